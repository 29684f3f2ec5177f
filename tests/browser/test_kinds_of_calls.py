"""The page of a call in a real browser, for each kind: bridged, masked, streamed, failed and transferred."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from fixtures.agent import DemoAgent
from media.audio import tone
from tests.acceptance.clients.phone import Manner
from tests.acceptance.stage import Customer
from tests.browser.far_ends import served, telephone
from tests.browser.test_calls import ECHO, SPEECH, TALKING, place, rows, until
from tests.browser.test_webhook_answers import forgetful_receiver
from tests.support.browser import Browsing, picture, violations
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


def measured(page: Page, *lines: str) -> None:
    """Wait until a call that is up has two intervals of each line of its quality."""
    # Before, the key is that of the levels alone.
    expect(page.locator("#quality [data-measure=mos]")).to_be_visible(timeout=60_000)
    for line in lines:
        expect(page.locator("#quality .key")).to_contain_text(line, timeout=60_000)


def hang_up(page: Page) -> None:
    """Hang up on the page of a call, and wait for what it shows of a call that is over."""
    page.get_by_role("button", name="Hang up").click()
    expect(page.locator("#ladder")).to_contain_text("BYE")
    expect(page.locator("#player")).to_be_visible()
    expect(page.locator("main caption")).to_contain_text("Audio quality")
    # That it is being hung up is past.
    expect(page.get_by_text("being hung up")).to_have_count(0)


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
        # Each event is refused once, and sent again.
        assert wait_until(
            lambda: len(receiver.seen) >= 4 and len(receiver.signatures) >= 2 * len(receiver.seen), 60
        ), receiver
    with opened(browsing, server, key, call_sid) as page:
        expect(page.locator("#player")).to_be_visible()
        expect(page.locator("#quality")).to_be_visible()
        for direction in ("received", "sent"):
            for leg in "ab":
                expect(page.locator("#quality .key")).to_contain_text(f"leg {leg}, {direction}")
        described = page.get_by_role("img", name="MOS. ").get_attribute("aria-label") or ""
        assert re.search(r"leg b received: [34]\.\d+ \u2013 [34]\.", described), described
        picture(page, "bridged-call", 1480)
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
    with opened(browsing, server, key, call_sid) as page:
        expect(page.locator("main")).to_contain_text("Masking")
        expect(page.locator("#ladder")).to_contain_text("masked.bridged")
        measured(page, "leg a, sent", "leg b, received")
        hang_up(page)
        # Both have spoken, and have been heard.
        wave = page.evaluate("fetch(location.pathname + '/waveform').then((answer) => answer.json())")
        assert [max(channel) > 0.05 for channel in wave["channels"]] == [True, True]
        assert page.locator("main table tbody tr").count() == 4
        told(page, "call.answered", "masked.bridged", "BYE", "Charge")
        picture(page, "masked-call", 1640)
        listed = rows(page)
        assert len([line for line in listed if "INVITE" in line and "200" not in line]) == 2, listed
    until(customer, call_sid, "completed")


def test_a_streamed_call_shows_its_stream(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with served(DemoAgent(tone(900.0, 500), echo=True)) as agent:
        call_sid = place(customer, SPEECH, stream_url=agent.url, record=True)
        until(customer, call_sid, "in-progress")
        with opened(browsing, server, key, call_sid) as page:
            expect(page.locator("#ladder")).to_contain_text("stream")
            measured(page, "leg a, sent")
            hang_up(page)
            # The agent marks the end of its greeting.
            told(page, "INVITE", "call.answered", "stream.started", "stream.stopped", "Charge")
            told(page, "agent.mark", "mark.played")
            picture(page, "streamed-call", 1640)
        until(customer, call_sid, "completed")


def test_a_failed_call_shows_its_reason(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with telephone(server) as first, telephone(server) as second:
        first.manner, second.manner = Manner(status=503, rings_s=0.4), Manner(status=500, rings_s=0.7)
        made = server.request("POST", "/v1/trunk-portal/carriers", key, {"name": "Airtel"})
        carrier_sid = made.data["carrier_sid"]
        for priority, phone in enumerate((first, second), 1):
            gateway = {"host": phone.host, "port": phone.port, "priority": priority}
            path = f"/v1/trunk-portal/carriers/{carrier_sid}/gateways"
            assert server.request("POST", path, key, gateway).status == 201
        with forgetful_receiver() as receiver:
            hook = {"status_webhook_url": receiver.url, "status_webhook_events": ["completed"]}
            call_sid = place(customer, "+919876543210", carrier_sid=carrier_sid, **hook, **TALKING)
            ended = until(customer, call_sid, "failed")
            assert wait_until(lambda: len(receiver.signatures) >= 2, 30), receiver
    with opened(browsing, server, key, call_sid) as page:
        expect(page.locator("#status")).to_have_text("failed")
        expect(page.locator("#cause")).to_contain_text(ended["hangup_cause"])
        expect(page.locator("#sip-status")).to_contain_text("500")
        # Both gateways, each with its answer.
        for refusal in ("503", "500"):
            expect(page.locator("#ladder .refused", has_text=refusal)).to_have_count(1)
        picture(page, "failed-call")


def test_a_call_whose_agent_is_away_says_so(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    nowhere = f"ws://127.0.0.1:{free_port()}/"
    call_sid = place(customer, ECHO, stream_url=nowhere)
    ended = until(customer, call_sid, "failed", "completed")
    with opened(browsing, server, key, call_sid) as page:
        expect(page.locator("main")).to_contain_text(ended["hangup_cause"])
        expect(page.locator("#ladder .bad", has_text="stream.failed")).to_be_visible()


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
        measured(page, "leg a, sent", "leg b, received")
        hang_up(page)
        told(page, "INVITE", "call.answered", "bridge", "call.transferred", "Charge")
        picture(page, "transferred-call", 1640)
    until(customer, call_sid, "completed")
