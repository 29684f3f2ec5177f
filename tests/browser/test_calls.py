"""Calls in a real browser: the first visit, the list of calls that are up, and the page of a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.stage import Customer
from tests.support.browser import DESKTOP, HEARD, KEEP, PHONE, Browsing, Scheme, picture, violations
from tests.support.server_process import ServerProcess, wait_until

ECHO, SPEECH, BUSY, TONE = (f"+91980000000{number}" for number in (1, 2, 3, 7))
TALKING: dict[str, Any] = {"record": True, "verbs": [{"verb": "pause", "length": 120}]}


def place(customer: Customer, to: str, **body: Any) -> str:
    """Place a call of the customer's by the API."""
    number, _ = customer.lease()
    reply = customer.server.request("POST", "/v1/calls", customer.key, {"from": number, "to": to, **body})
    assert reply.status == 201, reply
    return str(reply.data["call_sid"])


def until(customer: Customer, call_sid: str, *statuses: str) -> dict[str, Any]:
    """Wait until a call has one of some statuses."""

    def found() -> dict[str, Any]:
        data: dict[str, Any] = customer.server.request("GET", f"/v1/calls/{call_sid}", customer.key).data
        return data

    assert wait_until(lambda: found()["status"] in statuses, 30), found()
    return found()


def rows(page: Page) -> list[str]:
    """Lines of the ladder, with their texts."""
    return page.locator("#ladder [role=button]").all_text_contents()


def test_the_first_visit_leads_to_a_talking_call_in_three_clicks(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    number, _ = customer.lease()
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        # An account without calls begins here.
        assert page.url == f"{server.url}/console/first"
        page.get_by_label(SPEECH).check()
        page.get_by_label("Plays a prompt").check()
        line = page.locator("#first code").inner_text()
        page.get_by_role("button", name="3. Call").click()
        page.wait_for_url("**/console/first?call=*")
        # The axis fills while the call is up.
        expect(page.locator("#ladder")).to_contain_text("call.answered")
        expect(page.locator("#ladder")).to_contain_text("BYE")
        expect(page.locator("#player")).to_be_visible()
        assert violations(page) == []
        picture(page, "first-call", 1240)
    listed = server.request("GET", "/v1/calls", customer.key).data
    assert [(call["from"], call["to"], call["status"]) for call in listed] == [(number, SPEECH, "completed")]
    # The line beside it is the request that was made.
    body = json.loads(line[line.index("'{") + 1 : line.rindex("'")])
    assert (body["from"], body["to"], body["verbs"][0]["verb"]) == (number, SPEECH, "play")


@pytest.mark.long("a call to a real browser")
def test_the_first_call_may_be_to_the_browser_and_its_agent_is_tried_there(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    number, _ = customer.lease()
    made = server.request("POST", "/api/v1/agents", key, {"name": "Echo"})
    assert made.status == 201, made
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/agents/{made.data['id']}")
        page.get_by_role("link", name="Talk with it").click()
        assert page.get_by_label("Your browser").is_checked()
        assert '"to": "browser:first-' in page.locator("#first code").inner_text().replace(':"', ': "')
        page.get_by_role("button", name="3. Call").click()
        expect(page.locator("#first-state")).to_contain_text("You are talking with it")
        expect(page.locator("#ladder")).to_contain_text("How can I help you?")
        expect(page.get_by_role("img", name="Level, dB")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("button", name="Hang up").click()
        expect(page.locator("#first-state")).to_contain_text("ended")
        expect(page.locator("#ladder")).to_contain_text("BYE")
        # And once more, in the same page.
        page.get_by_label("Plays a prompt").check()
        page.get_by_role("button", name="3. Call").click()
        expect(page.locator("#first-state")).to_contain_text("ended", timeout=60_000)
    calls = server.request("GET", "/v1/calls", key).data
    assert [(call["from"], call["status"]) for call in calls] == [(number, "completed")] * 2
    assert all(call["to"].startswith("browser:first-") for call in calls)


def test_live_shows_calls_as_they_come_and_go(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/live")
        expect(page.locator("[data-live]")).to_have_text("Live")
        expect(page.locator("#live-none")).to_be_visible()
        call_sid = place(customer, ECHO, **TALKING)
        row = page.locator("#live-rows tr")
        expect(row).to_have_count(1)
        expect(row).to_contain_text("in progress")
        expect(row).to_contain_text(f"{ECHO}: up")
        assert violations(page) == []
        other = place(customer, ECHO, **TALKING)
        expect(row).to_have_count(2)
        expect(row.first).to_contain_text("in progress")
        expect(row.first.locator("[data-loss]")).to_contain_text("loss")
        picture(page, "live", 480)
        row.first.get_by_role("button", name="Hang up").click()
        page.wait_for_url("**/console/live?done=hung_up")
        expect(row).to_have_count(1)
        server.request("DELETE", f"/v1/Accounts/{customer.account_sid}/Calls/{call_sid}", customer.key)
        expect(page.locator("#live-none")).to_be_visible()
    assert until(customer, other, "completed")["hangup_source"] == "api"


def test_a_party_is_muted_from_live(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    call_sid = place(customer, ECHO, **TALKING)
    until(customer, call_sid, "in-progress")
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/live")
        leg = page.locator("#live-rows .legs li")
        for button, shown in (("Mute", "muted"), ("Unmute", "")):
            leg.get_by_role("button", name=f"{button} {ECHO}", exact=True).click()
            page.wait_for_url(f"**/console/live?done={button.lower()}d")
            expect(leg.locator("[data-muted]")).to_have_text(shown)
            assert violations(page) == []
        # The call's axis has both.
        page.goto(f"{server.url}/console/calls/{call_sid}")
        expect(page.locator("#ladder")).to_contain_text("unmute")
    server.request("DELETE", f"/v1/Accounts/{customer.account_sid}/Calls/{call_sid}", customer.key)


@pytest.mark.long("a real browser that listens three times")
def test_a_call_is_heard_from_live_and_its_page_says_who_listened(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    call_sid = place(customer, TONE, **TALKING)
    until(customer, call_sid, "in-progress")
    with browsing.person() as page:
        page.add_init_script(KEEP)
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/live")
        row, told = page.locator("#live-rows tr"), page.locator("#live-heard")
        for _ in range(2):
            row.get_by_role("button", name="Listen in").click()
            expect(told).to_contain_text("are not heard")
            assert wait_until(lambda: float(page.evaluate(HEARD)) > 1e-3, 30.0)
            assert violations(page) == []
            row.get_by_role("button", name="Stop listening").click()
            expect(told).to_have_text("You hear the call no more.")
        row.get_by_role("button", name="Listen in").click()
        expect(told).to_contain_text("are not heard")
        server.request("DELETE", f"/v1/Accounts/{customer.account_sid}/Calls/{call_sid}", customer.key)
        expect(page.locator("#live-none")).to_be_visible()
        expect(told).to_have_text("You hear the call no more.")
        page.goto(f"{server.url}/console/calls/{call_sid}")
        expect(page.locator("#listeners tbody tr")).to_have_count(3)
        expect(page.locator("#ladder")).to_contain_text("listener.joined")
        assert violations(page) == []


def test_live_shows_the_level_and_the_loss_of_each_leg(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    verbs = [{"verb": "pause", "length": 3}, {"verb": "play", "url": "prompt:en/welcome", "loop": 20}]
    call_sid = place(customer, ECHO, verbs=verbs)
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/live")
        # The party says what it hears: first nothing, then the prompt.
        meter = page.locator("#live-rows").get_by_role("meter", name=f"Level of {ECHO}")
        expect(meter).to_have_js_property("value", 0)
        expect(meter).not_to_have_js_property("value", 0, timeout=20_000)
        expect(page.locator("#live-rows [data-loss]")).to_contain_text("loss 0 % in", timeout=20_000)
        assert violations(page) == []
        # A row that is drawn anew keeps its levels.
        page.get_by_role("button", name=f"Mute {ECHO}").click()
        expect(page.locator("#live-rows [data-muted]")).to_have_text("muted")
        expect(meter).not_to_have_js_property("value", 0, timeout=20_000)
    server.request("DELETE", f"/v1/Accounts/{customer.account_sid}/Calls/{call_sid}", customer.key)


@pytest.mark.long("starts a server twice")
def test_a_restart_of_the_server_is_noticed_and_the_page_catches_up(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    refused = ["ERR_", "Failed to load resource"]
    with browsing.person(errors=refused) as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/live")
        call_sid = place(customer, ECHO, **TALKING)
        light, row = page.locator("[data-live]"), page.locator("#live-rows tr")
        expect(row).to_have_count(1)
        server.kill()
        expect(light).to_have_text("Reconnecting")
        server.start()
        # The session outlives the server, and the calls that it was killed with are over.
        expect(light).to_have_text("Live")
        expect(page.locator("#live-none")).to_be_visible()
        assert until(customer, call_sid, "failed", "completed")
        place(customer, ECHO, **TALKING)
        expect(row).to_have_count(1)
        row.get_by_role("button", name="Hang up").click()
        page.wait_for_url("**/console/live?done=hung_up")


@pytest.mark.parametrize(
    ("scheme", "size"),
    [
        pytest.param("light", DESKTOP, id="light"),
        pytest.param("dark", DESKTOP, id="dark", marks=pytest.mark.long("the same pages once more")),
        pytest.param("light", PHONE, id="phone", marks=pytest.mark.long("the same pages once more")),
    ],
)
def test_the_page_of_a_call_shows_it_on_one_axis(
    browsing: Browsing,
    server: ServerProcess,
    customer: Customer,
    key: str,
    scheme: Scheme,
    size: tuple[int, int],
) -> None:
    verbs = [{"verb": "play", "url": "prompt:en/welcome"}, {"verb": "hangup"}]
    call_sid = place(customer, SPEECH, record=True, verbs=verbs)
    until(customer, call_sid, "completed")
    with browsing.person(scheme=scheme, size=size) as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls/{call_sid}")
        expect(page.locator("#ladder")).to_contain_text("call.recording.ready")
        listed = " ".join(rows(page))
        for told in ("INVITE", "180 Ringing", "200 OK", "ACK", "call.answered", "play", "BYE", "Charge"):
            assert told in listed, listed
        # A message opens, by keyboard as well.
        page.locator("#ladder [role=button]", has_text="INVITE").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#entry pre")).to_contain_text("INVITE sip:+919800000002")
        assert violations(page) == []
        page.keyboard.press("Escape")
        expect(page.locator("#entry")).to_be_hidden()
        page.get_by_label("SIP", exact=True).uncheck()
        expect(page.locator("#ladder")).not_to_contain_text("INVITE")
        assert violations(page) == []
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{wider} px wider than the screen"


@pytest.mark.long("plays a recording")
def test_the_recording_is_played_in_step_with_the_axis(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    verbs = [{"verb": "pause", "length": 3}, {"verb": "hangup"}]
    call_sid = place(customer, SPEECH, record=True, verbs=verbs)
    until(customer, call_sid, "completed")
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls/{call_sid}")
        player, head = page.locator("#player"), page.locator("#ladder .head-line")
        expect(player).to_be_visible()
        expect(head).to_have_attribute("visibility", "hidden")
        player.evaluate("player => player.play()")
        expect(head).to_have_attribute("visibility", "visible")
        before = float(head.get_attribute("y1") or 0)
        page.wait_for_function(
            "before => Number(document.querySelector('#ladder .head-line').getAttribute('y1')) > before + 2",
            arg=before,
        )


def test_a_call_is_exported(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str, tmp_path: Path
) -> None:
    call_sid = place(customer, BUSY, verbs=[{"verb": "hangup"}])
    until(customer, call_sid, "busy")
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls/{call_sid}")
        expect(page.locator("#ladder .refused")).to_contain_text("486")
        files = {}
        for name in ("Export JSON", "SIP as pcap"):
            with page.expect_download() as started:
                page.get_by_role("link", name=name).click()
            files[name] = started.value.path().read_bytes()
            assert call_sid in started.value.suggested_filename
    exported = json.loads(files["Export JSON"])
    assert exported["call"]["call_sid"] == call_sid
    assert any(message["label"].startswith("486") for message in exported["sip"])
    assert b"SIP/2.0 486" in files["SIP as pcap"]


def test_a_call_of_another_account_or_none_is_said_to_be_missing(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    other = server.add_account("Other")
    stranger = Customer(server, other.account_sid, other.api_key)
    call_sid = place(stranger, BUSY, verbs=[{"verb": "hangup"}])
    until(stranger, call_sid, "busy")
    with browsing.person(errors=["404"]) as page:
        browsing.sign_in(page, server.url, key)
        for sid in (call_sid, "01a1ffc4-0000-7000-8000-000000000000", "nonsense"):
            page.goto(f"{server.url}/console/calls/{sid}")
            assert page.get_by_role("heading", name="Not here").is_visible()
            assert BUSY not in page.content()
