"""
The console by keyboard alone: each page's main work, and every control of every page in its turn.

Nothing here is clicked. Whatever has the focus has to show it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.acceptance.stage import Customer
from tests.browser.pages import show
from tests.browser.test_calls import ECHO, SPEECH, TALKING, place, until
from tests.support.browser import SHOWS_FOCUS, Browsing
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.long(reason="goes through every page key by key")

# More stops than any page has.
MOST_STOPS = 250

# Whatever can be used and is shown; of radio buttons of one name, the one that is chosen.
CONTROLS = """() => {
    const kinds = "a[href], button, input, select, textarea, audio[controls], summary, [tabindex='0']";
    window.controls = [...document.querySelectorAll(kinds)].filter((it) => {
        if (it.disabled || it.tabIndex < 0 || !it.checkVisibility({visibilityProperty: true})) return false;
        const group = it.type === "radio" ? [...document.getElementsByName(it.name)] : [];
        return it.type !== "radio" || it.checked || !group.some((other) => other.checked);
    });
    document.activeElement.blur();
    return window.controls.length;
}"""
LEFT = f"""() => {{
    const it = document.activeElement;
    window.controls = window.controls.filter((other) => other !== it);
    return {{
        over: it === document.body || it === document.documentElement,
        hidden: ({SHOWS_FOCUS})() ? "" : it.outerHTML.slice(0, 120),
        left: window.controls.map((other) => other.outerHTML.slice(0, 120)),
    }};
}}"""


def reach(page: Page, wanted: Locator) -> None:
    """Press Tab until an element has the focus, and shows it."""
    expect(wanted).to_be_visible()
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if wanted.evaluate("it => it === document.activeElement"):
            assert page.evaluate(SHOWS_FOCUS), wanted
            return
    raise AssertionError(f"{wanted} is not reached")


def press(page: Page, wanted: Locator, key: str = "Enter") -> None:
    """Go to an element, and press a key there."""
    reach(page, wanted)
    page.keyboard.press(key)


def sign_in(page: Page, url: str, key: str) -> None:
    """Sign in; the field has the focus, or is reached."""
    page.goto(f"{url}/console/sign-in")
    field = page.get_by_label("API key")
    if not field.evaluate("it => it === document.activeElement"):
        reach(page, field)
    page.keyboard.type(key)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda there: "sign-in" not in there)


def test_every_control_of_every_page_is_reached_and_shows_its_focus(
    browsing: Browsing, own_server: ServerProcess, owner: Customer, addresses: Mapping[str, str]
) -> None:
    missed: dict[str, list[str]] = {}
    with browsing.person() as page:
        sign_in(page, own_server.url, owner.key)
        for path, address in sorted(addresses.items()):
            if path in ("/console/accounts", "/console/sign-in"):
                continue
            show(page, own_server, path, address)
            # The menu alone has more.
            assert page.evaluate(CONTROLS) > 10, path
            left: list[str] = []
            hidden: set[str] = set()
            for _ in range(MOST_STOPS):
                page.keyboard.press("Tab")
                found = page.evaluate(LEFT)
                left = found["left"]
                if found["over"]:
                    # Behind the last one; nothing has held the focus.
                    break
                hidden |= {found["hidden"]} - {""}
                if not left:
                    break
            if left or hidden:
                missed[path] = [*left, *(f"no focus shown: {one}" for one in sorted(hidden))]
    assert missed == {}


def test_a_call_is_found_opened_and_heard(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    verbs = [{"verb": "pause", "length": 3}, {"verb": "hangup"}]
    call_sid = place(customer, SPEECH, record=True, verbs=verbs)
    until(customer, call_sid, "completed")
    with browsing.person() as page:
        sign_in(page, server.url, key)
        press(page, page.locator("#pages").get_by_role("link", name="Calls", exact=True))
        page.wait_for_url("**/console/calls")
        reach(page, page.locator("#f-text"))
        page.keyboard.type(SPEECH)
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/calls?text=*")
        press(page, page.locator(f"tbody a[href$='{call_sid}']").first)
        page.wait_for_url(f"**/console/calls/{call_sid}")
        player = page.locator("#player")
        reach(page, player)
        page.keyboard.press("Space")
        head = page.locator("#ladder .head-line")
        expect(head).to_have_attribute("visibility", "visible")
        page.wait_for_function("() => document.getElementById('player').currentTime > 0.2")
        page.keyboard.press("Space")
        expect(player).to_have_js_property("paused", True)
        line = page.locator("#ladder [role=button]", has_text="INVITE").first
        press(page, line)
        expect(page.locator("#entry pre")).to_contain_text("INVITE sip:")
        page.keyboard.press("Escape")
        expect(page.locator("#entry")).to_be_hidden()
        # It goes on from where it was.
        assert line.evaluate("it => it === document.activeElement")


def test_a_call_that_is_up_is_muted_and_hung_up(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    call_sid = place(customer, ECHO, **TALKING)
    until(customer, call_sid, "in-progress")
    with browsing.person() as page:
        sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/live")
        row = page.locator("#live-rows tr")
        press(page, row.get_by_role("button", name="Mute"))
        expect(row.locator("[data-muted]")).to_have_text("muted")
        press(page, row.get_by_role("button", name="Hang up"))
        expect(page.locator("#live-none")).to_be_visible()
    assert until(customer, call_sid, "completed")["hangup_source"] == "api"


def test_a_number_is_bound(browsing: Browsing, server: ServerProcess, customer: Customer, key: str) -> None:
    number, number_id = customer.lease()
    with browsing.person() as page:
        sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/numbers")
        press(page, page.get_by_role("link", name=number).first)
        form = page.locator("form", has=page.get_by_role("heading", name="Bind", exact=True))
        reach(page, form.get_by_label("Target", exact=True))
        page.keyboard.type("Missed call")
        press(page, form.get_by_role("button").last)
        expect(page.get_by_role("status")).to_contain_text("The number is bound")
    bound = server.request("GET", f"/v1/phone-numbers/{number_id}", key).data
    assert bound["inbound_target_type"] == "missed_call"


def test_the_first_call_is_placed(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    customer.lease()
    with browsing.person() as page:
        sign_in(page, server.url, key)
        reach(page, page.locator("input[name=to]:checked"))
        page.keyboard.press("ArrowDown")
        chosen = page.locator("input[name=to]:checked")
        assert chosen.input_value() != SPEECH and page.evaluate(SHOWS_FOCUS)
        page.keyboard.press("ArrowUp")
        press(page, page.get_by_role("button", name="3. Call"))
        page.wait_for_url("**/console/first?call=*")
        expect(page.locator("#ladder")).to_contain_text("BYE")


def test_the_telephone_calls_presses_keys_and_hangs_up(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    customer.lease()
    with browsing.person() as page:
        sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/phone")
        reach(page, page.locator("#phone-to"))
        page.keyboard.type(ECHO)
        page.keyboard.press("Enter")
        hang_up = page.locator("#phone-hangup")
        expect(page.locator("#phone-clock")).to_be_visible()
        press(page, page.locator("[data-key='5']"))
        press(page, page.locator("#phone-mute"), "Space")
        expect(page.locator("#phone-mute")).to_have_attribute("aria-pressed", "true")
        press(page, hang_up)
        expect(hang_up).to_be_disabled()
    calls = server.request("GET", "/v1/calls", key).data
    assert [call["to"] for call in calls] == [ECHO] and until(customer, calls[0]["call_sid"], "completed")


def test_a_trunk_is_made_and_gets_a_gateway(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with browsing.person() as page:
        sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/trunks")
        reach(page, page.get_by_label("Name", exact=True))
        page.keyboard.type("Airtel")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("The trunk is there")
        reach(page, page.get_by_label("Host", exact=True))
        page.keyboard.type("127.0.0.1")
        page.keyboard.press("Enter")
        expect(page.locator("tbody")).to_contain_text("127.0.0.1")
    trunks = server.request("GET", "/v1/trunk-portal/carriers", key).data
    assert [trunk["name"] for trunk in trunks] == ["Airtel"]
