"""A server with the settings that it is shipped with: its limits, its destinations, and its ways out."""

from __future__ import annotations

import re
from typing import Any

import aiohttp
import pytest

from tests.acceptance.clients.http import Api, Reply
from tests.acceptance.conftest import customers_of
from tests.acceptance.shapes import (
    assert_masking_error,
    assert_messaging_error,
    assert_plain_error,
    assert_platform_error,
)
from tests.acceptance.stage import Customer, NewCustomer
from tests.support.server_process import ServerProcess

ELSEWHERE = "+919876543210"
HANG_UP = [{"verb": "hangup"}]
RATES = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


@pytest.fixture(scope="module")
def new_customer(shipped: ServerProcess) -> NewCustomer:
    """Make a customer of the shipped server."""
    return customers_of(shipped)


@pytest.fixture
def customer(new_customer: NewCustomer) -> Customer:
    """A customer whose requests are those of one test."""
    return new_customer()


@pytest.fixture
async def api(session: aiohttp.ClientSession, shipped: ServerProcess, customer: Customer) -> Api:
    """The API for the customer's platform key."""
    return Api(session, shipped.url, customer.key)


# Limits of requests


async def until_refused(api: Api, path: str, limit: int) -> Reply:
    """Ask until a request is refused; none of the first `limit` may be."""
    for _ in range(limit):
        (await api.get(path)).expect(200)
    return await api.get(path)


async def test_masking_takes_100_requests_a_minute(api: Api) -> None:
    refused = await until_refused(api, "/v1/masking/billing", 100)
    assert_masking_error(refused, 429, "rate_limited")
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    # The limit is one for all of masking, and for each key.
    body = {"party_a": "9800000001", "party_b": "9800000002"}
    assert_masking_error(await api.post("/v1/masking/calls", body), 429, "rate_limited")
    (await api.get("/v1/calls")).expect(200)


async def test_the_assistant_takes_100_requests_a_minute(api: Api, customer: Customer) -> None:
    assistant = api.with_key(customer.key_of("assistant"))
    first = (await assistant.get("/api/v1/agents")).expect(200)
    assert [int(first.headers[name]) for name in RATES[:2]] == [100, 99]
    assert int(first.headers[RATES[2]]) > 0
    refused = await until_refused(assistant, "/api/v1/agents", 99)
    assert_platform_error(refused, 429, "RATE_LIMITED")
    assert refused.headers[RATES[1]] == "0"
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    body = {"phone_number": "+919800000001", "agent_id": "01a1ffc4-0000-7000-8000-000000000000"}
    assert_platform_error(await assistant.post("/api/v1/calls/outbound", body), 429, "RATE_LIMITED")


async def test_responses_of_the_platform_show_what_is_left(api: Api) -> None:
    reply = (await api.get("/v1/phone-numbers")).expect(200)
    assert [int(reply.headers[name]) for name in RATES[:2]] == [600, 599]


# Destinations


@pytest.mark.parametrize(
    "url",
    [
        "http://app.example.com/missed",
        *("https://127.0.0.1/missed", "https://localhost/missed", "https://[::1]/missed"),
        *("https://10.0.0.1/missed", "https://192.168.1.1/missed", "https://169.254.169.254/latest"),
    ],
)
async def test_webhooks_go_to_public_addresses_by_https_alone(api: Api, customer: Customer, url: str) -> None:
    hooks = api.with_key(customer.key_of("platform", "webhooks.read", "webhooks.write"))
    body = {"url": url, "event_types": ["call.missed"]}
    assert_plain_error(await hooks.post("/v1/webhooks/subscriptions", body), 400)
    assert (await hooks.get("/v1/webhooks/subscriptions")).expect(200).data == []
    chat = api.with_key(customer.key_of("messaging", "webhooks.write"))
    body = {"url": url, "events": ["message.sent"]}
    reply = await chat.post("/api/webhook-endpoints", body)
    assert_messaging_error(reply, 400, "VALIDATION_ERROR", "url")
    assistant = api.with_key(customer.key_of("assistant"))
    body = {"url": url, "events": ["call.completed"]}
    reply = await assistant.post("/api/v1/webhooks", body)
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "url")


async def test_a_refused_stream_url_says_why_once_and_names_the_switch(api: Api, customer: Customer) -> None:
    number, _ = customer.lease()
    body = {"from": number, "to": "+919800000001", "stream_url": "ws://127.0.0.1:9000/ws"}
    error = assert_platform_error(await api.post("/v1/calls", body), 400, "VALIDATION_ERROR", "stream_url")
    message = error["details"]["errors"][0]["message"]
    assert not message.startswith("url:") and "url: url" not in error["message"], error
    assert "stream_url: url:" not in error["message"], error
    assert "TRUNKLINE_ALLOW_PRIVATE_DESTINATIONS" in message, error


# Ways out


def assert_no_route(reply: Reply, field: str, code: str = "VALIDATION_ERROR") -> None:
    """Require the refusal of a number that no carrier serves: what can be called, and what can be done."""
    error = assert_platform_error(reply, 400, code, field)
    (wrong,) = error["details"]["errors"]
    assert wrong["reason"] == "no_route", error
    told = f"{error['message']} {wrong['message']}"
    assert "919800000" in told.replace(" ", ""), told
    assert "carrier" in told, told


@pytest.mark.parametrize("to", [ELSEWHERE, "+911800123456"])
async def test_a_number_that_no_carrier_serves_is_refused_with_its_reason(
    api: Api, customer: Customer, to: str
) -> None:
    number, _ = customer.lease()
    assert_no_route(await api.post("/v1/calls", {"from": number, "to": to, "verbs": HANG_UP}), "to")
    stream = {"from": number, "to": to, "stream_url": "wss://bot.example.com/ws", "sample_rate": 8000}
    assert_no_route(await api.post(f"/v1/Accounts/{customer.account_sid}/Calls", stream), "to")
    assert (await api.get("/v1/calls")).expect(200).data == []


async def test_every_service_refuses_a_number_that_no_carrier_serves(api: Api, customer: Customer) -> None:
    customer.lease()
    assert_no_route(await api.post("/v1/voice-otp/send", {"to": ELSEWHERE}), "to")
    assistant = api.with_key(customer.key_of("assistant"))
    agent = (await assistant.post("/api/v1/agents", {"name": "Asha"})).expect(201).data["id"]
    body = {"phone_number": ELSEWHERE, "agent_id": agent}
    assert_no_route(await assistant.post("/api/v1/calls/outbound", body), "phone_number")
    for party, other in (("party_a", "party_b"), ("party_b", "party_a")):
        parties = {party: ELSEWHERE.removeprefix("+91"), other: "9800000001"}
        assert_no_route(await api.post("/v1/masking/calls", parties), party, "validation")


async def test_a_sandbox_number_can_be_called(api: Api, customer: Customer) -> None:
    number, _ = customer.lease()
    placed = await api.post("/v1/calls", {"from": number, "to": "+919800000003", "verbs": HANG_UP})
    sid = placed.expect(201).data["call_sid"]
    path = f"/v1/Accounts/{customer.account_sid}/Calls/{sid}"
    assert (await api.until(path, lambda call: call["ended_at"]))["status"] == "busy"


# What the first start prints


def printed(shipped: ServerProcess, label: str) -> str:
    """Text that the server printed at its start beside a label."""
    line = next(text for text in shipped.log().splitlines() if text.strip().startswith(label))
    return line.strip().removeprefix(label).split()[0].rstrip(",")


async def test_the_printed_key_places_the_printed_call(api: Api, shipped: ServerProcess) -> None:
    assert shipped.url in shipped.log()
    owner = api.with_key(printed(shipped, "API key"))
    (number, *_) = (await owner.get("/v1/phone-numbers")).expect(200).data
    body: dict[str, Any] = {"from": number["number"], "to": "+919800000001", "verbs": HANG_UP}
    call = (await owner.post("/v1/calls", body)).expect(201).data
    assert call["account_sid"] == printed(shipped, "demo account")
    assert (await owner.get("/v1/masking/billing")).expect(200).data["wallet_balance"] <= 1000


async def test_the_printed_key_opens_every_service(api: Api, shipped: ServerProcess) -> None:
    owner = api.with_key(printed(shipped, "API key"))
    for path in (
        *("/v1/calls", "/v1/phone-numbers", "/v1/trunk-portal/carriers", "/v1/voice-otp/calls"),
        *("/v1/masking/call-logs", "/v1/webhooks/subscriptions", "/api/webhook-endpoints"),
        *("/api/v1/contacts", "/api/v1/templates", "/api/v1/agents", "/api/v1/analytics"),
        *("/integrations/v1/tools", "/integrations/admin/tools", "/v1/keys", "/v1/account"),
    ):
        (await owner.get(path)).expect(200)


async def test_documents_need_no_key(api: Api) -> None:
    nobody = api.with_key(None)
    for path in ("/health", "/ready", "/metrics", "/openapi.json", "/asyncapi.json", "/docs"):
        assert (await nobody.get(path)).expect(200).content
    # The page of the API is shipped whole.
    for path in ("/docs/page.js", "/docs/scalar.js"):
        assert b"Scalar" in (await nobody.get(path)).expect(200).content


# The console


async def test_the_console_is_there_with_its_files(
    session: aiohttp.ClientSession, shipped: ServerProcess
) -> None:
    async with session.get(shipped.url) as page:
        assert page.status == 200 and page.url.path == "/console/sign-in"
        text = await page.text()
    files = re.findall(r'(?:href|src)="(/console/static/[^"]+)"', text)
    assert len(files) >= 3, text
    for path in files:
        async with session.get(shipped.url + path) as file:
            assert file.status == 200 and await file.read(), path
            assert "immutable" in file.headers["Cache-Control"]


# A server without any platform carrier


async def test_provisioning_that_is_not_there_is_told_to_a_customer_in_his_words(
    session: aiohttp.ClientSession, bare: ServerProcess
) -> None:
    customer = customers_of(bare)()
    added = bare.command("numbers", "add", "--account", customer.account_sid, "--number", "+918047500999")
    api = Api(session, bare.url, customer.key)
    path = f"/v1/phone-numbers/{added['phone_number_id']}"
    stream = {"target": "media_stream", "stream_url": "wss://bot.example.com/ws"}
    for reply in (await api.post(f"{path}/carrier"), await api.put(f"{path}/inbound", stream)):
        assert_platform_error(reply, 503, "not_configured")


async def test_a_customer_is_told_who_can_add_a_carrier_of_the_platform(
    session: aiohttp.ClientSession, bare: ServerProcess
) -> None:
    customer = customers_of(bare)()
    added = bare.command("numbers", "add", "--account", customer.account_sid, "--number", "+918047500998")
    api = Api(session, bare.url, customer.key)
    reply = (await api.post(f"/v1/phone-numbers/{added['phone_number_id']}/carrier")).expect(503)
    # Only the operator can add one.
    assert "operator" in reply.body["error"]["message"], reply.body
