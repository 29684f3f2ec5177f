"""The page of a call in a real browser, for each kind: bridged, masked, streamed, failed and transferred."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from fixtures.agent import DemoAgent
from media.audio import tone
from tests.acceptance.stage import Customer
from tests.browser.test_calls import ECHO, SPEECH, TALKING, place, rows, until
from tests.browser.test_webhook_answers import forgetful_receiver
from tests.support.browser import Browsing, picture, violations
from tests.support.demo_agent import served
from tests.support.ports import free_port
from tests.support.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.long("calls of every kind")


@contextmanager
def opened(browsing: Browsing, server: ServerProcess, key: str, call_sid: str) -> Iterator[Page]:
    """The page of a call, which anybody can use."""
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls/{call_sid}")
        expect(page.locator("#ladder [role=button]").first).to_be_visible()
        yield page
        assert violations(page) == []


def told(page: Page, *texts: str) -> None:
    """Each text is in a line of the ladder."""
    listed = " ".join(rows(page))
    assert [text for text in texts if text not in listed] == [], listed


def test_a_bridged_call_shows_both_legs(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with forgetful_receiver() as receiver:
        binding = {
            "target": "forward",
            "forward_to": ECHO,
            "record": True,
            "status_webhook_url": receiver.url,
        }
        number, _ = customer.lease(binding)
        # Long enough for two intervals of the quality of each leg.
        placed = {"to": number, "from": SPEECH, "hangup_after_seconds": 13}
        call_sid = server.request("POST", "/v1/sandbox/inbound", key, placed).data["call_sid"]
        until(customer, call_sid, "completed")
    with opened(browsing, server, key, call_sid) as page:
        expect(page.locator("#player")).to_be_visible()
        expect(page.locator("#quality")).to_be_visible()
        for direction in ("received", "sent"):
            for leg in "ab":
                expect(page.locator("#quality .key")).to_contain_text(f"leg {leg}, {direction}")
        described = page.get_by_role("img", name="MOS. ").get_attribute("aria-label") or ""
        assert re.search(r"leg b received: [34]\.\d+ \u2013 [34]\.", described), described
        picture(page, "bridged-call", 1240)
        listed = rows(page)
        assert len([line for line in listed if "INVITE" in line and "200" not in line]) == 2, listed
        told(page, "call.answered", "BYE", "Charge")
        # Both legs have their quality, in both directions.
        expect(page.locator("main")).to_contain_text("Audio quality")
        assert page.locator("main table tbody tr").count() >= 4


def test_a_masked_call_shows_its_parties_legs(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    number, _ = customer.lease()
    enrolled = server.request("POST", "/v1/masking/numbers", key, {"number": number, "force": True})
    assert enrolled.status == 201, enrolled
    body = {"party_a": ECHO, "party_b": SPEECH}
    placed = server.request("POST", "/v1/masking/calls", key, body)
    assert placed.status == 201, placed
    call_sid = placed.data["call_sid"]
    assert wait_until(lambda: server.request("GET", f"/v1/calls/{call_sid}", key).data["answered_at"], 30)
    with opened(browsing, server, key, call_sid) as page:
        expect(page.locator("main")).to_contain_text("Masking")
        expect(page.locator("#ladder")).to_contain_text("ACK")
        picture(page, "masked-call")
        listed = rows(page)
        assert len([line for line in listed if "INVITE" in line and "200" not in line]) == 2, listed
    server.request("DELETE", f"/v1/Accounts/{customer.account_sid}/Calls/{call_sid}", customer.key)
    until(customer, call_sid, "completed")


def test_a_streamed_call_shows_its_stream(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with served(DemoAgent(tone(900.0, 500), echo=True)) as agent:
        call_sid = place(customer, ECHO, stream_url=agent.url)
        until(customer, call_sid, "in-progress")
        with opened(browsing, server, key, call_sid) as page:
            expect(page.locator("#ladder")).to_contain_text("stream")
            page.get_by_role("button", name="Hang up").click()
            expect(page.locator("#ladder")).to_contain_text("BYE")
            # The agent marks the end of its greeting.
            told(page, "INVITE", "call.answered", "stream", "agent.mark", "mark.played", "Charge")
            picture(page, "streamed-call")
        until(customer, call_sid, "completed")


def test_a_failed_call_shows_its_reason(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    nowhere = f"ws://127.0.0.1:{free_port()}/"
    call_sid = place(customer, ECHO, stream_url=nowhere)
    ended = until(customer, call_sid, "failed", "completed")
    with opened(browsing, server, key, call_sid) as page:
        expect(page.locator("main")).to_contain_text(ended["hangup_cause"])
        expect(page.locator("#ladder")).to_contain_text("stream")
        picture(page, "failed-call")


def test_a_transferred_call_shows_the_party_that_took_over(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    call_sid = place(customer, ECHO, **TALKING)
    until(customer, call_sid, "in-progress")
    path = f"/v1/Accounts/{customer.account_sid}/Calls/{call_sid}"
    reply = server.request("POST", path, key, {"transfer": {"to": SPEECH, "timeout": 20}})
    assert reply.status == 202, reply
    with opened(browsing, server, key, call_sid) as page:
        expect(page.locator("#ladder")).to_contain_text("call.transferred")
        expect(page.locator("#ladder")).to_contain_text("leg b")
        page.get_by_role("button", name="Hang up").click()
        expect(page.locator("#ladder")).to_contain_text("BYE")
        told(page, "INVITE", "call.answered", "bridge", "call.transferred", "Charge")
        expect(page.locator("#player")).to_be_visible()
        picture(page, "transferred-call", 1240)
    until(customer, call_sid, "completed")
