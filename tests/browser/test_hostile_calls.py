"""Calls of hostile far ends, by real SIP and a real stream: what they say is text, and never runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from fixtures.agent import AgentSession, DemoAgent
from tests.acceptance.stage import Customer, own_number
from tests.browser.far_ends import served
from tests.browser.test_calls import SPEECH, place, until
from tests.browser.test_hostile import CORPUS, assert_nothing_ran
from tests.browser.test_webhook_answers import scripted_receiver
from tests.support.browser import Browsing, violations
from tests.support.raw_sip import RawSip, raw_sip
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.long(reason="opens each message of calls in a real browser")

SCRIPT, IMAGE, QUOTE, CLOSING, VECTOR = CORPUS[:5]
# Each text names its place, so that what is found on a page is that of this place.
# The grammar of addresses permits this one as it is; what it does not permit stays escaped.
USER = f"user{QUOTE}"
ASSERTED = f"asserted{VECTOR}"
FIELDS = {
    "User-Agent": f"agent{SCRIPT}",
    "Subject": f"subject{CLOSING}",
    "X-Note": f"note{CORPUS[7]}",
    "Call-Info": f'<https://example.com/>;purpose="info{VECTOR}"',
    "Organization": f"organisation{CORPUS[9]}",
}
SESSION = f"s=session{SCRIPT}\r\ni=information{IMAGE}"
CALL_ID = "<script>window.ran:1</script>@'<img/src/onerror>'"
MARK, SAID, LEFT = f"mark{SCRIPT}", f"said{SCRIPT}", f"left{VECTOR}"


class HostileAgent(DemoAgent):
    """An agent whose marks, transcript and reasons are hostile."""

    async def _begin(self, session: AgentSession, start: dict[str, Any]) -> None:
        await super()._begin(session, start)
        for said in (
            {"event": "mark", "mark": {"name": MARK}},
            {"event": "transcript", "transcript": {"role": "agent", "text": SAID, "final": True}},
            {"event": SCRIPT, SCRIPT: {}},
            {"event": "hold", "hold": {"active": SCRIPT}},
        ):
            await session.socket.send_json(said)


@contextmanager
def trunk(server: ServerProcess, customer: Customer, key: str, peer: RawSip, **binding: Any) -> Iterator[str]:
    """A trunk of the customer's with the peer as its gateway, with a hostile name; its number."""

    def made(path: str, body: dict[str, Any], method: str = "POST") -> Any:
        reply = server.request(method, path, key, body)
        assert reply.status < 300, reply
        return reply.data

    carrier = made("/v1/trunk-portal/carriers", {"name": f"trunk{IMAGE}"})["carrier_sid"]
    gateway = {"host": "127.0.0.1", "port": peer.port, "inbound": True, "outbound": True}
    made(f"/v1/trunk-portal/carriers/{carrier}/gateways", gateway)
    number = own_number()
    body = {"number": number, "carrier_sid": carrier, "friendly_name": f"name{SCRIPT}"}
    number_sid = made("/v1/trunk-portal/numbers", body)["number_sid"]
    if binding:
        made(f"/v1/phone-numbers/{number_sid}/inbound", binding, "PUT")
    yield number


@contextmanager
def hostile_peer(server: ServerProcess) -> Iterator[RawSip]:
    """A far end that is hostile in every field."""
    with raw_sip(
        server.sip_port,
        display=f"display{SCRIPT} {QUOTE}",
        user=USER,
        call_id=f"{uuid4().hex}{CALL_ID}",
        extra=FIELDS | {"P-Asserted-Identity": f'"{ASSERTED}" <sip:{USER}@example.com>'},
        session=SESSION,
    ) as peer:
        yield peer


def opened_texts(page: Page) -> str:
    """Open each entry of the axis, and return what they show."""
    lines, shown = page.locator("#ladder [role=button]"), []
    for number in range(lines.count()):
        lines.nth(number).focus()
        page.keyboard.press("Enter")
        expect(page.locator("#entry pre")).to_be_visible()
        shown.append(page.locator("#entry").inner_text())
        assert_nothing_ran(page)
        page.keyboard.press("Escape")
    return "\n".join(shown)


def test_a_hostile_caller_and_its_agent_are_text_on_live_and_on_the_page_of_the_call(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with (
        hostile_peer(server) as peer,
        served(HostileAgent()) as agent,
        trunk(server, customer, key, peer, target="media_stream", stream_url=agent.url) as number,
        browsing.person() as page,
    ):
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/live")
        expect(page.locator("[data-live]")).to_have_text("Live")
        peer.call(number)
        row = page.locator("#live-rows tr")
        # It comes by the event stream, and again with the page.
        for _ in range(2):
            expect(row).to_have_count(1)
            expect(row).to_contain_text(USER)
            expect(row).to_contain_text("in progress")
            assert_nothing_ran(page)
            page.reload()
        href = row.locator("a[href^='/console/calls/']").first.get_attribute("href") or ""
        page.goto(server.url + href)
        ladder = page.locator("#ladder")
        expect(ladder).to_contain_text(MARK)
        expect(ladder).to_contain_text(SAID)
        assert_nothing_ran(page)
        peer.hang_up(LEFT)
        expect(ladder).to_contain_text("BYE")
        until(customer, href.rsplit("/", 1)[1], "completed")
        page.goto(server.url + href)
        expect(ladder).to_contain_text("Charge")
        expect(page.locator("#facts")).to_contain_text(USER)
        expect(page.locator("#facts")).to_contain_text(f"trunk{IMAGE}")
        text = opened_texts(page)
        for written in (
            *(f"display{SCRIPT}", *FIELDS.values(), f"session{SCRIPT}", f"information{IMAGE}"),
            *(CALL_ID, ASSERTED, MARK, SAID, LEFT),
        ):
            assert written in text, written
        assert violations(page) == []
        # A list has it as well, as a link that searches for it.
        page.goto(f"{server.url}/console/calls")
        assert_nothing_ran(page)
        page.locator("tbody").get_by_role("link", name=USER).click()
        expect(page.locator("tbody tr")).to_have_count(1)
        assert page.locator("#f-text").input_value() == USER
        assert_nothing_ran(page)


def test_a_party_that_refuses_in_hostile_words_is_text(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with hostile_peer(server) as peer, trunk(server, customer, key, peer) as number:
        body = {"from": number, "to": "+919812345678", "verbs": [{"verb": "hangup"}], "tag": f"tag{SCRIPT}"}
        placed = server.request("POST", "/v1/calls", key, body)
        assert placed.status == 201, placed
        call_sid = placed.data["call_sid"]
        fields = {"Reason": f'Q.850;cause=21;text="reason{SCRIPT}"', "Server": f"server{VECTOR}"}
        peer.refuse_next(f"603 phrase{SCRIPT}", {**fields, "Warning": f'399 x "warning{CLOSING}"'})
        until(customer, call_sid, "failed", "busy", "no-answer")
        with browsing.person() as page:
            browsing.sign_in(page, server.url, key)
            page.goto(f"{server.url}/console/calls/{call_sid}")
            expect(page.locator("#sip-status")).to_contain_text(f"phrase{SCRIPT}")
            expect(page.locator("#facts")).to_contain_text(f"tag{SCRIPT}")
            expect(page.locator("#ladder")).to_contain_text("603 phrase<script>")
            text = opened_texts(page)
            for written in (f"reason{SCRIPT}", f"server{VECTOR}", f"warning{CLOSING}"):
                assert written in text, written
            assert violations(page) == []


def test_log_lines_of_hostile_calls_are_text(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    verbs = json.dumps([{"verb": "hangup", f"field{SCRIPT}": 1}]).encode()
    with (
        scripted_receiver({"/": [(200, verbs)]}) as url,
        hostile_peer(server) as peer,
        served(HostileAgent()) as agent,
        trunk(server, customer, key, peer, target="media_stream", stream_url=agent.url) as number,
        browsing.person() as page,
    ):
        peer.call(number)
        peer.hang_up(LEFT)
        [called] = server.request("GET", "/v1/calls", key).data
        asked = place(customer, SPEECH, webhook_url=url)
        link = server.command("console", "link", "--operator", "ops", "--url", server.url)["url"]
        page.goto(str(link))
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/console/live")
        for call_sid, written in ((called["call_sid"], USER), (asked, f"field{SCRIPT}")):
            until(customer, call_sid, "completed", "failed")
            page.goto(f"{server.url}/console/server/log?call={call_sid}")
            expect(page.locator("main pre")).to_contain_text(written)
            assert_nothing_ran(page)
            assert violations(page) == []
