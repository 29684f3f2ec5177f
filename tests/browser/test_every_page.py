"""
Every page of the console in a real browser: it loads without an error, and anybody can use it.

The pages are those of the router: one that is new fails here until it has its address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from playwright.sync_api import Route, expect

from tests.acceptance.stage import Customer
from tests.browser.pages import NO_PAGES, declared, show
from tests.support.browser import Browsing, violations_in_all_looks
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.long(reason="opens every page, and judges it in four looks")


def test_every_page_can_be_used_by_anybody(
    browsing: Browsing, own_server: ServerProcess, owner: Customer, addresses: Mapping[str, str]
) -> None:
    assert addresses.keys() | NO_PAGES == declared()
    found: dict[str, list[str]] = {}
    with browsing.person() as page:
        browsing.sign_in(page, own_server.url, owner.key)
        # Operators have it; see below.
        for path, address in sorted(addresses.items()):
            if path in ("/console/accounts", "/console/sign-in"):
                continue
            show(page, own_server, path, address)
            found[path] = violations_in_all_looks(page)
        # An entry of the axis, opened.
        page.goto(f"{own_server.url}{addresses['/console/calls/{sid}']}")
        page.locator("#ladder [role=button]").first.click()
        expect(page.locator("#entry pre")).to_be_visible()
        found["an entry of the axis"] = violations_in_all_looks(page)
    assert {path: listed for path, listed in found.items() if listed} == {}


def test_the_pages_of_operators_can_be_used_by_anybody(
    browsing: Browsing, own_server: ServerProcess, addresses: Mapping[str, str]
) -> None:
    found: dict[str, list[str]] = {}
    link = own_server.command("console", "link", "--operator", "asha@desk", "--url", own_server.url)["url"]
    with browsing.person(errors=["403"]) as page:
        page.goto(str(link))
        found["link"] = violations_in_all_looks(page)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/console/live")
        call = addresses["/console/calls/{sid}"]
        shown = {
            path: path for path in ("/console/accounts", "/console/live", "/console/calls", "/console/server")
        }
        for path, address in {**shown, "/console/calls/{sid}": call}.items():
            show(page, own_server, path, address)
            found[path] = violations_in_all_looks(page)
        page.goto(f"{own_server.url}/console/wallet")
        expect(page.locator("main")).to_contain_text("choose it first")
        found["no account"] = violations_in_all_looks(page)
    assert {path: listed for path, listed in found.items() if listed} == {}


def test_pages_that_refuse_can_be_used_by_anybody(
    browsing: Browsing, server: ServerProcess, customer: Customer
) -> None:
    """Pages of what is not there or not for the key, of a wrong form, and of signing in that fails."""
    found: dict[str, list[str]] = {}
    reader = customer.key_of("all", "numbers.read", "calls.read", "trunks.read", "admin")
    with browsing.person(errors=["403", "404", "400", "401"]) as page:
        page.goto(f"{server.url}/console/sign-in")
        found["sign-in"] = violations_in_all_looks(page)
        page.get_by_label("API key").fill("vk_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_be_visible()
        found["a wrong key"] = violations_in_all_looks(page)
        browsing.sign_in(page, server.url, reader)
        for address, text in {
            "/console/keys": "lacks the scope",
            "/console/server": "TRUNKLINE_CONSOLE_OPERATORS",
            "/console/nothing": "no page at this address",
            "/console/trunks/01a1ffc4-0000-7000-8000-000000000000": "Not here",
            "/console/calls?length=long": "length",
        }.items():
            page.goto(f"{server.url}{address}")
            expect(page.locator("main")).to_contain_text(text)
            found[address] = violations_in_all_looks(page)
    assert {path: listed for path, listed in found.items() if listed} == {}


def test_pages_that_only_lead_on_can_be_used_by_anybody(
    browsing: Browsing, own_server: ServerProcess, owner: Customer
) -> None:
    """The page behind the form of signing in, and the one that follows a link of another site once more."""
    found: dict[str, list[str]] = {}
    with browsing.person() as page:
        page.goto(f"{own_server.url}/console/sign-in")
        page.route("**/console/sign-in", stay)
        page.get_by_label("API key").fill(owner.key)
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("main a")).to_have_attribute("href", "/console")
        found["signed in"] = violations_in_all_looks(page)
    with browsing.person() as page:
        page.route("**/console/calls", stay)
        page.goto(f"{own_server.url}/console/calls")
        expect(page.locator("main a")).to_have_attribute("href", "/console/calls")
        found["again"] = violations_in_all_looks(page)
    assert {path: listed for path, listed in found.items() if listed} == {}


def stay(route: Route) -> None:
    """Answer a request as a link of another site makes it, by its page without what leads on at once."""
    headers = {**route.request.headers, "sec-fetch-site": "cross-site"}
    response = route.fetch(headers=headers if route.request.method == "GET" else None)
    body, leads_on = re.subn('<meta http-equiv="refresh"[^>]*>', "", response.text())
    assert leads_on == 1, body
    route.fulfill(response=response, body=body)
