"""Frame of the pages in a real browser: its menu, signing in by the printed link, and signing out."""

from __future__ import annotations

from tests.acceptance.stage import Customer
from tests.support.browser import PHONE, Browsing
from tests.support.server_process import ServerProcess


def test_pages_work_by_keyboard(browsing: Browsing, server: ServerProcess, key: str) -> None:
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"


def test_the_menu_of_a_narrow_screen_opens_and_closes(
    browsing: Browsing, server: ServerProcess, key: str
) -> None:
    with browsing.person(size=PHONE) as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls")
        button, link = page.get_by_role("button", name="Menu"), page.locator("#pages a").first
        assert not link.is_visible()
        button.click()
        assert link.is_visible() and button.get_attribute("aria-expanded") == "true"
        button.click()
        assert not link.is_visible()


def test_the_printed_link_signs_in_once(browsing: Browsing, server: ServerProcess) -> None:
    line = next(text for text in server.log().splitlines() if text.strip().startswith("console "))
    link = line.split()[1]
    with browsing.person() as page:
        page.goto(link)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda there: "sign-in" not in there)
        assert page.locator(".leave").is_visible()
    with browsing.person(errors=["401"]) as page:
        page.goto(link)
        page.get_by_role("button", name="Sign in").click()
        assert page.get_by_role("alert").is_visible()
        assert page.get_by_label("API key").is_visible()


def test_signing_out_leaves_nothing_behind(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/console/sign-in")
        page.goto(f"{server.url}/console/calls")
        assert "sign-in" in page.url
        assert customer.account_sid[:8] not in page.content()
