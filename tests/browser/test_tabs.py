"""Many open pages of one person: one connection for the events of all, so that none waits for another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.stage import Customer
from tests.browser.test_calls import ECHO, TALKING, place
from tests.support.browser import Browsing
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.long("many pages of a real browser")

# A browser opens six connections to a host.
TABS = 10


@contextmanager
def tabs(browsing: Browsing, server: ServerProcess, key: str, count: int = TABS) -> Iterator[list[Page]]:
    """So many pages of one person, signed in, until the block ends."""
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        yield [page, *(page.context.new_page() for _ in range(count - 1))]


def is_live(page: Page) -> None:
    """Wait until the page says that it follows its calls."""
    expect(page.locator("[data-live]")).to_have_text("Live")


def test_ten_pages_are_live_and_each_can_go_on(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with tabs(browsing, server, key) as pages:
        for page in pages:
            page.goto(f"{server.url}/console/live")
            is_live(page)
        call_sid = place(customer, ECHO, **TALKING)
        rows = [page.locator(f'#live-rows a[href$="{call_sid}"]') for page in pages]
        for row in rows:
            expect(row).to_have_count(1)
        # Half of them look at the call, and the others still follow the list.
        for page in pages[::2]:
            page.goto(f"{server.url}/console/calls/{call_sid}")
            is_live(page)
            expect(page.locator("#ladder")).to_contain_text("INVITE")
        server.request("DELETE", f"/v1/Accounts/{customer.account_sid}/Calls/{call_sid}", key)
        for row in rows[1::2]:
            expect(row).to_have_count(0)
        for page in pages[::2]:
            expect(page.locator("#ladder")).to_contain_text("BYE")
            expect(page.locator("#status")).to_contain_text("completed")
        for page in pages:
            page.goto(f"{server.url}/console/calls")
            expect(page.locator("tbody tr")).to_have_count(1)


def test_a_page_without_shared_workers_follows_its_calls_while_it_is_seen(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with browsing.person() as page:
        page.add_init_script("delete window.SharedWorker")
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/live")
        is_live(page)
        show(page, seen=False)
        with page.expect_response("**/console/live/calls"):
            show(page, seen=True)
        call_sid = place(customer, ECHO, **TALKING)
        row = page.locator("#live-rows tr")
        expect(row).to_have_count(1)
        server.request("DELETE", f"/v1/Accounts/{customer.account_sid}/Calls/{call_sid}", key)
        expect(row).to_have_count(0)


def show(page: Page, *, seen: bool) -> None:
    """Put a page before or behind another one, which a browser without a screen never does."""
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        not seen,
    )
