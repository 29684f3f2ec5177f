"""An operator in a real browser: calls of all accounts, the choice of one, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.acceptance.conftest import customers_of
from tests.acceptance.stage import Customer
from tests.browser.test_calls import ECHO, TALKING, place, until
from tests.support.browser import Browsing, violations
from tests.support.server_process import ServerProcess


@pytest.fixture
def customers(server: ServerProcess) -> Callable[[], Customer]:
    """Customers with money."""
    return customers_of(server)


def test_an_operator_sees_calls_of_all_accounts_and_acts_in_one(
    browsing: Browsing, server: ServerProcess, customers: Callable[[], Customer]
) -> None:
    one, other = customers(), customers()
    link = server.command("console", "link", "--operator", "asha@desk", "--url", server.url)["url"]
    with browsing.person(errors=["403", "404"]) as page:
        page.goto(str(link))
        assert violations(page) == []
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/console/live")
        expect(page.locator("[data-live]")).to_have_text("Live")
        calls = [place(customer, ECHO, **TALKING) for customer in (one, other)]
        rows = [page.locator("#live-rows tr", has=page.locator(f"a[href$='{sid}']")) for sid in calls]
        for row in rows:
            expect(row).to_contain_text("in progress")
            expect(row.locator("[data-account]")).not_to_be_empty()
            expect(row.get_by_role("button")).to_have_count(0)
        assert violations(page) == []
        page.goto(f"{server.url}/console/calls")
        for sid in calls:
            expect(page.locator(f"tbody a[href$='{sid}']")).to_have_count(1)
        assert violations(page) == []
        page.goto(f"{server.url}/console/numbers")
        expect(page.locator("main")).to_contain_text("choose it first")
        # A call of one account, and into it.
        page.goto(f"{server.url}/console/calls/{calls[0]}")
        expect(page.locator("#ladder")).to_contain_text("call.answered")
        assert page.get_by_role("button", name="Hang up").count() == 0
        assert violations(page) == []
        page.get_by_role("button", name="Act in its account").click()
        page.get_by_role("button", name="Hang up").click()
        expect(page.locator("#ladder")).to_contain_text("BYE")
        until(one, calls[0], "completed")
        page.goto(f"{server.url}/console/calls/{calls[1]}")
        expect(page.locator("main")).to_contain_text("no such call")
        page.goto(f"{server.url}/console/server")
        recorded = page.locator("tr", has_text="asha@desk")
        expect(recorded.filter(has_text=f"/console/calls/{calls[0]}/hangup")).to_have_count(1)
        # Accounts, by their list.
        page.goto(f"{server.url}/console/accounts")
        expect(page.locator("tr", has_text=one.account_sid)).to_contain_text("You are in it")
        assert violations(page) == []
        page.get_by_role("button", name="Look at all accounts").click()
        page.get_by_label("Name or identifier").fill(other.account_sid)
        page.get_by_role("button", name="Search").click()
        expect(page.locator("tbody tr")).to_have_count(1)
        page.get_by_role("button", name="Act in it").click()
        page.wait_for_url("**/console/live")
        expect(page.locator("#live-rows tr")).to_have_count(1)
        page.get_by_role("button", name="Hang up").click()
        until(other, calls[1], "completed")
