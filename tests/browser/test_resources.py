"""Pages of numbers, trunks, agents, products, webhooks and the server, with hostile names everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.conftest import customers_of, start_server
from tests.acceptance.stage import Customer
from tests.browser.test_hostile import ALL, CORPUS, assert_nothing_ran
from tests.support.browser import DESKTOP, PHONE, Browsing, Scheme, violations
from tests.support.ports import free_port
from tests.support.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.long(reason="opens every page of an account three times, and waits for calls")

NAME = CORPUS[1]


def made(server: ServerProcess, key: str, path: str, body: dict[str, Any], method: str = "POST") -> Any:
    """Data of a request that makes or changes something."""
    reply = server.request(method, path, key, body)
    assert reply.status < 300, (path, reply.body)
    return reply.body["data"] if "data" in reply.body else reply.body


@pytest.fixture
def paths(server: ServerProcess, customer: Customer, key: str) -> list[str]:
    """Pages of things whose every text is hostile."""
    number, number_id = customer.lease()
    made(server, key, f"/v1/phone-numbers/{number_id}", {"friendly_name": ALL[:64]}, "PATCH")
    trunk = made(server, key, "/v1/trunk-portal/carriers", {"name": NAME, "description": ALL[:200]})
    gateways = f"/v1/trunk-portal/carriers/{trunk['carrier_sid']}/gateways"
    made(server, key, gateways, {"host": "127.0.0.1", "port": 5999, "send_options_ping": True})
    agent = {"name": NAME, "voice": NAME, "greeting": "Hello", "instructions": ALL.replace("{{", "")}
    agent_id = made(server, key, "/api/v1/agents", agent)["id"]
    made(server, key, "/v1/masking/numbers", {"number": number, "force": True})
    parties = {"party_a": "+919800000001", "party_b": "+919800000002"}
    made(server, key, "/v1/masking/sessions", {**parties, "expires_in_sec": 600})
    made(server, key, "/v1/voice-otp/send", {"to": "+919800000001", "reference": NAME})
    template = {"name": "hostile", "category": "UTILITY", "body": ALL.replace("{{", "").replace("}}", "")}
    made(server, key, "/api/v1/templates", template)
    made(server, key, "/v1/keys", {"name": NAME, "service": "platform"})
    hook = {"url": f"http://127.0.0.1:{free_port()}/?q=<b>", "event_types": ["call.missed"]}
    hook_id = made(server, key, "/v1/webhooks/subscriptions", hook)["id"]
    return [
        *("numbers", f"numbers/{number_id}", "numbers/buy", "trunks", f"trunks/{trunk['carrier_sid']}"),
        *("agents", f"agents/{agent_id}", "webhooks", f"webhooks/calls/{hook_id}"),
        *(
            "masking",
            "masking/logs",
            "otp",
            "messages",
            "templates",
            "keys",
            "wallet",
            "server",
        ),
    ]


@pytest.mark.parametrize(
    ("scheme", "size"),
    [("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE)],
    ids=["light", "dark", "phone"],
)
def test_pages_with_hostile_texts_can_be_used_by_anybody(
    browsing: Browsing,
    server: ServerProcess,
    key: str,
    paths: list[str],
    scheme: Scheme,
    size: tuple[int, int],
) -> None:
    found: dict[str, Any] = {}
    with browsing.person(scheme=scheme, size=size) as page:
        browsing.sign_in(page, server.url, key)
        for path in paths:
            response = page.goto(f"{server.url}/console/{path}")
            assert response is not None and response.status == 200, path
            assert_nothing_ran(page)
            found[path] = violations(page)
            wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wider <= 0, f"{path} is {wider} px wider than the screen"
    assert {path: listed for path, listed in found.items() if listed} == {}


def send(page: Page, heading: str, **fields: str) -> None:
    """Fill the form of a heading, and send it."""
    form = page.locator("form", has=page.get_by_role("heading", name=heading, exact=True))
    for label, value in fields.items():
        field = form.get_by_label(label.replace("_", " "), exact=True)
        if field.evaluate("it => it.tagName") == "SELECT":
            field.select_option(label=value)
        else:
            field.fill(value)
    form.get_by_role("button").last.click()


def test_a_number_is_bound_and_called_from_the_sandbox(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    _, number_id = customer.lease()
    with browsing.person(errors=["400", "409"]) as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/numbers/{number_id}")
        send(page, "Bind", Target="Media stream (your agent's socket)", Stream_URL="http://wrong")
        expect(page.locator("#bind-stream_url-hint.wrong")).to_contain_text("ws")
        send(page, "Bind", Target="Missed call")
        expect(page.get_by_role("status")).to_contain_text("The number is bound")
        # The form has the fields of what is chosen, and what was typed for another target is not sent.
        bind = page.locator("form", has=page.get_by_role("heading", name="Bind", exact=True))
        expect(bind.get_by_label("Name of the telephone")).to_be_hidden()
        send(page, "Bind", Target="Media stream (your agent's socket)", Stream_URL="wss://agent.example/")
        expect(page.get_by_role("alert")).to_contain_text("bound elsewhere")
        send(page, "Bind", Target="Speech model of a vendor", Vendor="openai", Model="gpt realtime")
        expect(page.locator("#bind-model_model-hint.wrong")).to_contain_text("must be a name")
        expect(page.locator("#bind-model_api_key-hint.wrong")).to_contain_text("unless key names")
        assert violations(page) == []
        browser = "Browser (a telephone in web pages)"
        send(page, "Bind", Target=browser, Name_of_the_telephone="1st", Take_over_from_another_target="yes")
        expect(page.locator("#bind-identity-hint.wrong")).to_contain_text("the first a letter")
        expect(bind.get_by_label("Stream URL")).to_be_hidden()
        send(page, "Bind", Target=browser, Name_of_the_telephone="desk", Take_over_from_another_target="yes")
        expect(page.get_by_role("status")).to_contain_text("The number is bound")
        expect(page.locator("main")).to_contain_text("browser")
        send(page, "Bind", Target="Missed call", Take_over_from_another_target="yes")
        expect(page.get_by_role("status")).to_contain_text("The number is bound")
        send(page, "Call me from the sandbox", The_caller="listens", Hangs_up_after_seconds="2")
        page.wait_for_url(re.compile("/console/calls/[0-9a-f-]{36}$"))


def test_a_key_is_made_and_its_session_sees_its_scopes_alone(
    browsing: Browsing, server: ServerProcess, key: str
) -> None:
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/keys")
        page.get_by_label("numbers.read", exact=True).check()
        send(page, "New key", Name="reader", Service="Platform: calls, numbers, trunks, masking, OTP")
        secret = page.get_by_label("The secret").inner_text()
        assert secret.startswith("vp_")
        page.goto(f"{server.url}/console/keys")
        assert secret not in page.content()
    with browsing.person(errors=["403"]) as page:
        browsing.sign_in(page, server.url, secret)
        expect(page.locator("#pages li a")).to_have_text(["Numbers", "Webhooks", "API reference"])
        page.goto(f"{server.url}/console/wallet")
        expect(page.locator("main")).to_contain_text("lacks the scope calls.read")


def test_a_delivery_shows_its_request_and_its_failure_and_is_sent_again(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    number, number_id = customer.lease()
    made(server, key, f"/v1/phone-numbers/{number_id}/inbound", {"target": "missed_call"}, "PUT")
    hook = {"url": f"http://127.0.0.1:{free_port()}/", "event_types": ["call.missed"]}
    hook_id = made(server, key, "/v1/webhooks/subscriptions", hook)["id"]
    made(server, key, "/v1/sandbox/inbound", {"to": number, "hangup_after_ringing_seconds": 0.5})
    log = f"/v1/webhooks/subscriptions/{hook_id}/deliveries"
    wait_until(lambda: any(it["attempts"] for it in server.request("GET", log, key).data))
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/webhooks/calls/{hook_id}")
        expect(page.locator("tbody")).to_contain_text("call.missed")
        page.locator("tbody a").first.click()
        expect(page.locator("pre").first).to_contain_text(number)
        assert violations(page) == []
        page.get_by_role("button", name="Send again").click()
        expect(page.get_by_role("status")).to_contain_text("It is sent again")
        page.get_by_role("button", name="Send a test event").click()
        expect(page.get_by_role("status")).to_contain_text("did not accept")


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a single account, which is its operator's."""
    yield from start_server(tmp_path_factory)


def test_the_operator_sees_plots_and_settings(browsing: Browsing, own_server: ServerProcess) -> None:
    # It is ready before it prints what it made.
    wait_until(lambda: "  API key " in own_server.log())
    line = next(text for text in own_server.log().splitlines() if text.strip().startswith("API key"))
    with browsing.person() as page:
        browsing.sign_in(page, own_server.url, line.split()[2])
        page.goto(f"{own_server.url}/console/server")
        memory = page.locator("[data-metric=process_resident_memory_bytes]")
        expect(memory.locator("output")).to_have_text(re.compile("^[0-9.]+[mM]$"))
        expect(memory.locator("canvas")).to_be_visible()
        expect(page.locator("main")).to_contain_text("TRUNKLINE_DATA_DIR")
        assert "TRUNKLINE_SECRET_KEYS" not in page.content()
        page.get_by_role("link", name="Log lines of a call").click()
        page.get_by_label("Identifier of the call").fill(CORPUS[0])
        page.get_by_role("button", name="Show").click()
        expect(page.locator("main")).to_contain_text("No line of this call")
        assert violations(page) == []
        assert_nothing_ran(page)
        page.goto(f"{own_server.url}/console/server")
        cores = page.locator("[data-metric=process_cpu_seconds_total] output")
        expect(cores).to_have_text(re.compile("^[0-9]"), timeout=20_000)
        assert violations(page) == []
    other = customers_of(own_server)()
    with browsing.person() as page:
        browsing.sign_in(page, own_server.url, other.key_of("all", "*"))
        page.goto(f"{own_server.url}/console/server")
        expect(page.locator("main")).to_contain_text("TRUNKLINE_CONSOLE_OPERATORS")
        assert page.locator("figure").count() == 0
