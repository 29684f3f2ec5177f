"""Pages that are open while their server is restarted: they notice it, and show what is then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.conftest import customers_of, start_server
from tests.acceptance.stage import Customer
from tests.browser.test_calls import ECHO, TALKING, place
from tests.support.browser import Browsing
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.long("restarts a server")

# The server is away, or answers before it is ready.
GONE = ("ERR_", "Failed to load resource", "502", "503")


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that the test may restart."""
    yield from start_server(tmp_path_factory)


@pytest.fixture
def buyer(own: ServerProcess) -> Customer:
    """Its customer."""
    return customers_of(own)()


def is_away(page: Page) -> None:
    """Wait until the page says that the server does not answer."""
    expect(page.locator("[data-notice=away]")).to_be_visible()


def is_back(page: Page) -> None:
    """Wait until the page says so no more."""
    expect(page.locator("[data-notice=away]")).to_be_hidden()


def test_every_page_catches_up_with_a_server_that_was_restarted(
    browsing: Browsing, own: ServerProcess, buyer: Customer
) -> None:
    key = buyer.key_of("all", "*")
    buyer.lease()
    call_sid = place(buyer, ECHO, **TALKING)
    paths = ["live", f"calls/{call_sid}", "numbers", "webhooks", "trunks", "wallet", "phone"]
    with browsing.person(errors=GONE) as page:
        browsing.sign_in(page, own.url, key)
        pages = {path: page.context.new_page() for path in paths}
        for path, opened in pages.items():
            opened.goto(f"{own.url}/console/{path}")
            opened.evaluate("window.before = true")
        live, call, numbers = pages["live"], pages[f"calls/{call_sid}"], pages["numbers"]
        expect(live.locator("#live-rows tr")).to_have_count(1)
        expect(call.locator("#status")).to_contain_text("in progress")
        listed = numbers.locator("tbody tr").count()
        # Something is typed in one of them.
        pages["trunks"].get_by_label("Name", exact=False).first.fill("Mine")
        own.kill()
        for opened in pages.values():
            is_away(opened)
        expect(live.locator("[data-live]")).to_have_text("Reconnecting")
        buyer.server.command("numbers", "add", "--account", buyer.account_sid, "--number", "+918047999999")
        own.start()
        for opened in pages.values():
            is_back(opened)
        # Those with live parts load them anew, and go on.
        expect(live.locator("#live-none")).to_be_visible()
        expect(call.locator("#cause")).to_contain_text("CRASH")
        for opened in (live, call):
            expect(opened.locator("[data-live]")).to_have_text("Live")
        after = place(buyer, ECHO, **TALKING)
        expect(live.locator(f'#live-rows a[href$="{after}"]')).to_have_count(1)
        # The others are loaded anew, but for what somebody is about to send or to say.
        expect(numbers.locator("tbody tr")).to_have_count(listed + 1)
        for path in ("webhooks", "wallet"):
            pages[path].wait_for_function("() => window.before === undefined")
        expect(pages["trunks"].locator("[data-notice=stale]")).to_be_visible()
        assert pages["trunks"].get_by_label("Name", exact=False).first.input_value() == "Mine"
        assert pages["phone"].evaluate("window.before") is True
        own.request("DELETE", f"/v1/Accounts/{buyer.account_sid}/Calls/{after}", key)


def test_the_page_of_the_server_shows_the_settings_of_the_one_that_runs(
    browsing: Browsing, own: ServerProcess
) -> None:
    link = own.command("console", "link", "--operator", "asha", "--url", own.url)["url"]
    with browsing.person(errors=GONE) as page:
        page.goto(str(link))
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda there: "sign-in" not in there)
        page.goto(f"{own.url}/console/server")
        row = page.locator("#settings tr", has_text="TRUNKLINE_DRAIN_S")
        expect(row).to_contain_text("1")
        page.evaluate("window.before = true")
        own.kill()
        is_away(page)
        own.set(TRUNKLINE_DRAIN_S="7")
        own.start()
        is_back(page)
        expect(row).to_contain_text("7")
        # Its plots go on.
        assert page.evaluate("window.before") is True
