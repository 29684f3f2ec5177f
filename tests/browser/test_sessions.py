"""The end of a session in a real browser: by sign-out, with its key and with its time, on every open page."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.stage import Customer
from tests.browser.test_calls import ECHO, TALKING, place
from tests.support.browser import Browsing
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.long("the server asks every 15 s")

# With events of calls, of one call, and only with those of the session.
PATHS = ("live", "calls/{call}", "webhooks", "phone")
# It reads the stream of events as a page does that is open.
_READ_EVENTS = """async () => {
    const response = await fetch("/console/events?calls=all");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    window.events = "";
    (async () => {
        for (;;) {
            const { value, done } = await reader.read();
            if (done) break;
            window.events += value;
        }
        window.events += "closed";
    })();
}"""


@pytest.fixture
def call_sid(customer: Customer) -> Iterator[str]:
    """A call that is up."""
    made = place(customer, ECHO, **TALKING)
    yield made
    customer.server.request("DELETE", f"/v1/Accounts/{customer.account_sid}/Calls/{made}", customer.key)


@contextmanager
def open_pages(browsing: Browsing, server: ServerProcess, key: str, call_sid: str) -> Iterator[list[Page]]:
    """Pages of one person, all of which end at the form that signs in."""
    # What a page asks for between the end of the session and its own is refused.
    with browsing.person(errors=["401"]) as page:
        browsing.sign_in(page, server.url, key)
        pages = [page, *(page.context.new_page() for _ in PATHS)]
        for opened, path in zip(pages[1:], PATHS, strict=True):
            opened.goto(f"{server.url}/console/{path.format(call=call_sid)}")
        expect(pages[1].locator("#live-rows tr")).to_have_count(1)
        expect(pages[2].locator("#ladder")).to_contain_text("INVITE")
        # It follows nothing by itself.
        page.goto(f"{server.url}/console/sign-in")
        page.evaluate(_READ_EVENTS)
        page.wait_for_function("() => window.events.includes('event: hello')")
        yield pages
        page.wait_for_function("() => window.events.endsWith('closed')", timeout=60_000)
        assert "event: end\ndata: {}\n\nclosed" in page.evaluate("window.events")
        for opened in pages[1:]:
            opened.wait_for_url("**/console/sign-in*", timeout=60_000)
            expect(opened.get_by_label("API key")).to_be_visible()
            assert "data-session" not in opened.content()


def test_the_revocation_of_the_key_ends_every_page(
    browsing: Browsing, server: ServerProcess, customer: Customer, call_sid: str
) -> None:
    owner = customer.key_of("all", "*")
    made = server.request("POST", "/v1/keys", owner, {"name": "page", "service": "all", "scopes": ["*"]}).data
    with open_pages(browsing, server, made["key"], call_sid):
        revoked = server.request("DELETE", f"/v1/keys/{made['id']}", owner)
        assert revoked.status in (200, 204), revoked


def test_the_end_of_its_time_ends_every_page(
    browsing: Browsing, server: ServerProcess, key: str, call_sid: str
) -> None:
    with (
        open_pages(browsing, server, key, call_sid),
        closing(sqlite3.connect(server.data_dir / "trunkline.db", timeout=30.0)) as database,
        database,
    ):
        # Of the sessions of this module only those of this test are open.
        database.execute("UPDATE console_sessions SET expires_at = 1 WHERE kind = 'session'")


def test_signing_out_in_one_page_ends_every_page(
    browsing: Browsing, server: ServerProcess, key: str, call_sid: str
) -> None:
    with open_pages(browsing, server, key, call_sid) as pages:
        pages[3].get_by_role("button", name="Sign out").click()


def test_another_session_of_the_key_goes_on_after_a_sign_out(
    browsing: Browsing, server: ServerProcess, key: str, call_sid: str
) -> None:
    with browsing.person() as stays:
        browsing.sign_in(stays, server.url, key)
        stays.goto(f"{server.url}/console/live")
        expect(stays.locator("[data-live]")).to_have_text("Live")
        with open_pages(browsing, server, key, call_sid) as pages:
            pages[3].get_by_role("button", name="Sign out").click()
        expect(stays.locator("#live-rows tr")).to_have_count(1)
        expect(stays.locator("[data-live]")).to_have_text("Live")
