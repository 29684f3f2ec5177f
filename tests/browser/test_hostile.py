"""Texts of far ends and customers, which are shown and never run."""

from __future__ import annotations

import sqlite3
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, Route, expect

from tests.acceptance.stage import Customer
from tests.browser.test_calls import BUSY, place, until
from tests.support.browser import Browsing
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.long(reason="shows each text on each page")

CORPUS = (
    "<script>window.ran=1</script>",
    '"><img src=x onerror=window.ran=1>',
    "'-(window.ran=1)-'",
    "</script><script>window.ran=1</script>",
    "<svg onload=window.ran=1>",
    "javascript:window.ran=1",
    "{{ ''.__class__ }}${window.ran=1}",
    "</pre></dialog></section><iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    "\u202e\u2028\ufeff<style>*{display:none}</style>",
    "onfocus=window.ran=1 autofocus x='",
)
ALL = " ".join(CORPUS)
# What the page decides by: a state, an address of its own, or the name of a place in it.
KEPT = {"status", "call_sid", "lane", "kind", "leg", "direction", "url", "waveform", "created_at"}
KEPT |= {"answered_at", "ended_at", "state", "timestamp"}


def hostile(value: Any, name: str = "") -> Any:
    """The value with the corpus in place of every text that others have written."""
    if isinstance(value, dict):
        return {key: hostile(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [hostile(item, name) for item in value]
    return f"{value} {ALL}" if isinstance(value, str) and name not in KEPT else value


def assert_nothing_ran(page: Page) -> None:
    """Require that no text became a part of the page."""
    assert page.evaluate("window.ran") is None
    assert page.locator("iframe, img[src='x'], svg[onload], main style, main script:not([type])").count() == 0
    assert page.locator("main").is_visible()


@pytest.fixture
def call_sid(server: ServerProcess, customer: Customer) -> str:
    """A call whose row has the corpus in every text that a far end or a customer can fill."""
    made = place(customer, BUSY, verbs=[{"verb": "hangup"}], tag=ALL[:255])
    until(customer, made, "busy")
    columns = ("from_number", "to_number", "sip_reason", "hangup_cause", "sip_call_id", "tag")
    with sqlite3.connect(server.data_dir / "trunkline.db") as database:
        changes = ", ".join(f"{column} = ?" for column in columns)
        database.execute(f"UPDATE calls SET {changes} WHERE call_sid = ?", (*(ALL for _ in columns), made))
    database.close()
    return made


def test_the_list_and_the_page_of_a_call_show_texts_as_texts(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str, call_sid: str
) -> None:
    carrier = {"name": ALL[:100]}
    server.request("POST", "/v1/trunk-portal/carriers", customer.key_of("all", "*"), carrier)
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        for path in ("calls", f"calls/{call_sid}", "first", "live"):
            page.goto(f"{server.url}/console/{path}")
            assert_nothing_ran(page)
        page.goto(f"{server.url}/console/calls")
        assert CORPUS[0] in page.locator("tbody").inner_text()
        for text in CORPUS:
            page.goto(f"{server.url}/console/calls?text={quote(text)}&cause={quote(text)}")
            assert page.locator("#f-text").input_value() == text.strip()
            assert_nothing_ran(page)


def test_the_axis_shows_texts_as_texts(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str, call_sid: str
) -> None:
    def answer(route: Route) -> None:
        data = route.fetch().json()
        data["webhooks"] = [
            {"at_ms": 5, "event": "x", "method": "POST", "url": "u", "status": "failed", "attempts": 2}
            | {"response_code": 0, "problem": "p", "delivered_ms": None, "next_attempt_at": "n", "body": "b"}
            | {
                "log": [
                    {
                        "at_ms": 6,
                        "number": number + 1,
                        "took_ms": 3,
                        "status": 500,
                        "problem": "p",
                        "body": "b",
                    }
                    | {"body_bytes": 3, "is_whole": number == 1}
                    for number in range(2)
                ]
            }
        ]
        data["transcript"] = [{"at_ms": 6, "role": "agent", "text": "hello"}]
        route.fulfill(json=hostile(data))

    with browsing.person() as page:
        page.route("**/timeline", answer)
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls/{call_sid}")
        lines = page.locator("#ladder [role=button]")
        expect(lines.first).to_be_visible()
        for number in range(lines.count()):
            lines.nth(number).focus()
            page.keyboard.press("Enter")
            expect(page.locator("#entry pre")).to_be_visible()
            assert_nothing_ran(page)
            page.keyboard.press("Escape")


def test_the_live_list_shows_texts_as_texts(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    def answer(route: Route) -> None:
        call = {
            **{name: ALL for name in ("from", "to", "hangup_cause", "stream", "node", "product")},
            **{"call_sid": f"../../{CORPUS[5]}", "direction": "inbound", "status": "ringing", "active": True},
            **{"created_at": "2026-01-31T12:00:00.000Z", "answered_at": None, "ended_at": None},
            "legs": [{"leg": 0, "state": ALL, "party": ALL}],
        }
        route.fulfill(json={"calls": [call], "total": 1})

    with browsing.person() as page:
        page.route("**/live/calls", answer)
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/live")
        row = page.locator("#live-rows tr")
        expect(row).to_have_count(1)
        assert CORPUS[1] in row.inner_text()
        assert_nothing_ran(page)
        assert (row.locator("a").get_attribute("href") or "").startswith("/console/calls/..%2F")
