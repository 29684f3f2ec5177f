"""Pages of resources and products whose every text is hostile: each is there, as text, and none runs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.stage import Customer
from tests.browser.test_hostile import ALL, CORPUS, assert_nothing_ran
from tests.browser.test_hostile_calls import USER, hostile_peer, trunk
from tests.browser.test_resources import made
from tests.browser.test_webhook_answers import forgetful_receiver
from tests.support.browser import Browsing, violations
from tests.support.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.long(reason="opens pages of an account for each kind of text")

PERSON = "+919800100000"
# A page shows white space and controls otherwise than they were written.
WORDS = tuple(re.sub(r"[\u202e\u2028\ufeff\s]+", " ", text).strip() for text in CORPUS)
SCRIPT, IMAGE = CORPUS[0], CORPUS[1]


def shown(page: Page) -> str:
    """All that the page shows, with the values of its fields."""
    text = page.locator("main").inner_text()
    fields = "main input:not([type=hidden]):not([type=checkbox]), main textarea"
    values = page.locator(fields).evaluate_all("all => all.map((it) => it.value)")
    options = page.locator("main option").all_text_contents()
    return re.sub(r"[\u202e\u2028\ufeff\s]+", " ", " ".join([text, *values, *options]))


def assert_text(page: Page, *texts: str) -> None:
    """Require that each text is shown, that nothing ran, and that everybody can use the page."""
    found = shown(page)
    assert [text for text in texts if text not in found] == [], found
    assert_nothing_ran(page)
    assert violations(page) == []


def test_a_message_and_its_parts(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    text: dict[str, Any] = {"to": PERSON, "type": "text", "text": ALL}
    list_of = {"body": ALL[:200], "header": IMAGE, "footer": SCRIPT, "buttons": [{"id": "y", "title": "<b>"}]}
    sent = [text, {"to": PERSON, "type": "list", "interactive": list_of}]
    ids = [made(server, key, "/api/v1/messages", body)["messageId"] for body in sent]
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/messages/{ids[0]}")
        assert_text(page, *WORDS)
        page.goto(f"{server.url}/console/messages/{ids[1]}")
        assert_text(page, *WORDS[:3], "<b>")
        page.goto(f"{server.url}/console/messages")
        assert_text(page, *WORDS)


def test_a_delivery_with_a_hostile_answer(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    number, number_id = customer.lease()
    made(server, key, f"/v1/phone-numbers/{number_id}/inbound", {"target": "missed_call"}, "PUT")
    with forgetful_receiver() as receiver, browsing.person() as page:
        hook = {"url": f"{receiver.url}?q={SCRIPT}", "event_types": ["call.missed"]}
        hook_id = made(server, key, "/v1/webhooks/subscriptions", hook)["id"]
        made(server, key, "/v1/sandbox/inbound", {"to": number, "hangup_after_ringing_seconds": 0.5})
        log = f"/v1/webhooks/subscriptions/{hook_id}/deliveries"
        assert wait_until(lambda: any(it["attempts"] for it in server.request("GET", log, key).data), 30)
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/webhooks/calls/{hook_id}")
        assert_text(page, SCRIPT)
        page.locator("tbody a").first.click()
        expect(page.locator("main")).to_contain_text("Attempt 1")
        assert_text(page, *WORDS)


def test_names_of_keys_agents_and_numbers_and_texts_of_the_wallet(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    _, number_id = customer.lease()
    made(server, key, f"/v1/phone-numbers/{number_id}", {"friendly_name": f"label{IMAGE}"}, "PATCH")
    made(server, key, "/v1/keys", {"name": f"key{IMAGE}", "service": "platform"})
    stream = {"stream_url": "wss://agent.example.com/?%3Cb%3E&onload=window.ran=1"}
    agent_id = made(server, key, "/api/v1/agents", {"name": f"agent{SCRIPT}", **stream})["id"]
    spoken = {"name": f"spoken{IMAGE}", "greeting": f"greeting{IMAGE}", "instructions": f"told{SCRIPT}"}
    spoken_id = made(server, key, "/api/v1/agents", spoken)["id"]
    server.command(
        *("wallet", "top-up", "--account", customer.account_sid, "--amount", "5"),
        *("--reference", f"reference{IMAGE}", "--note", f"note{SCRIPT}"),
    )
    pages = {
        "keys": [f"key{IMAGE}"],
        "numbers": [f"label{IMAGE}"],
        # Its binding offers the agents by their names.
        f"numbers/{number_id}": [f"label{IMAGE}", f"agent{SCRIPT}", f"spoken{IMAGE}"],
        "agents": [f"agent{SCRIPT}", f"spoken{IMAGE}"],
        f"agents/{agent_id}": [f"agent{SCRIPT}", stream["stream_url"]],
        f"agents/{spoken_id}": [f"spoken{IMAGE}", f"greeting{IMAGE}", f"told{SCRIPT}"],
        "wallet": [f"reference{IMAGE}", f"note{SCRIPT}"],
    }
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        for path, texts in pages.items():
            page.goto(f"{server.url}/console/{path}")
            assert_text(page, *texts)


def test_logs_of_masked_calls_and_sessions(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with hostile_peer(server) as peer, trunk(server, customer, key, peer) as number:
        made(server, key, "/v1/masking/numbers", {"number": number, "force": True})
        # Nobody knows this caller, so the call is refused and logged.
        peer.call(number, is_answered=False)
        log = "/v1/masking/call-logs"
        assert wait_until(lambda: bool(server.request("GET", log, key).body.get("data")), 30)
        with browsing.person() as page:
            browsing.sign_in(page, server.url, key)
            page.goto(f"{server.url}/console/masking/logs")
            assert_text(page, USER)
            page.goto(f"{server.url}/console/masking")
            assert_text(page, number)


def test_what_a_form_refuses_is_shown_again_as_text(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    _, number_id = customer.lease()
    with browsing.person(errors=["400"]) as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/numbers/{number_id}")
        for label, value in (
            ("Stream URL", f"http://{SCRIPT}"),
            ("Parameters", f'{{"a": {IMAGE}'),
            ("Credentials", SCRIPT),
        ):
            page.get_by_label(label, exact=True).fill(value)
        page.locator("form[aria-labelledby=bind-heading] button").last.click()
        expect(page.locator(".hint.wrong").first).to_be_visible()
        assert_text(page, SCRIPT, IMAGE)
        page.goto(f"{server.url}/console/calls?start={IMAGE}&mos={SCRIPT}&length=x&price={CORPUS[4]}")
        assert_text(page, SCRIPT, CORPUS[4])
