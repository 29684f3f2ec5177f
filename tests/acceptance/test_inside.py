"""Calls that need no carrier: between numbers that are held here, and from the sandbox."""

from __future__ import annotations

from tests.acceptance.clients.agent import Agent
from tests.acceptance.clients.http import Api
from tests.acceptance.clients.webhooks import Receiver
from tests.acceptance.shapes import assert_fits, assert_platform_error
from tests.acceptance.stage import ENDED, Customer, NewCustomer


async def test_a_number_held_here_is_reached_from_here(
    api: Api, new_customer: NewCustomer, customer: Customer, agent: Agent
) -> None:
    stream = {"target": "media_stream", "stream_url": agent.url(), "sample_rate": 8000}
    called = new_customer()
    to, _ = called.lease(stream)
    number, _ = customer.lease()
    verbs = [{"verb": "pause", "length": 1}, {"verb": "hangup"}]
    placed = (await api.post("/v1/calls", {"from": number, "to": to, "verbs": verbs})).expect(201).data
    started = (await (await agent.connected()).frame("start"))["start"]
    assert (started["direction"], started["from"], started["to"]) == ("inbound", number, to)
    path = f"/v1/Accounts/{customer.account_sid}/Calls/{placed['call_sid']}"
    assert (await api.until(path, lambda call: call["status"] in ENDED))["status"] == "completed"
    (inbound,) = (await api.with_key(called.key).get("/v1/calls")).expect(200).data
    assert (inbound["direction"], inbound["from"], inbound["to"]) == ("inbound", number, to)


async def test_a_sandbox_party_calls_a_number_of_the_account(
    api: Api, customer: Customer, agent: Agent, stranger: Customer
) -> None:
    stream = {"target": "media_stream", "stream_url": agent.url(), "sample_rate": 8000}
    number, _ = customer.lease(stream)
    body = {"from": "+919800000006", "to": number, "hangup_after_seconds": 3}
    made = (await api.post("/v1/sandbox/inbound", body)).expect(201).data
    assert_fits(made, {"from": "+919800000006", "to": number})
    connection = await agent.connected()
    started = (await connection.frame("start"))["start"]
    assert (started["direction"], started["from"], started["to"]) == ("inbound", "+919800000006", number)
    await connection.frame("dtmf", lambda frame: frame["dtmf"]["digit"] == "#")
    await connection.until_closed()
    refused = await api.with_key(stranger.key).post("/v1/sandbox/inbound", body)
    assert_platform_error(refused, 403, "NUMBER_NOT_OWNED")


async def test_a_missed_call_is_tried_without_a_carrier(
    api: Api, new_customer: NewCustomer, receiver: Receiver
) -> None:
    shop = new_customer()
    number, _ = shop.lease({"target": "missed_call", "timeout": 30})
    hooks = api.with_key(shop.key_of("platform", "webhooks.read", "webhooks.write", "calls.write"))
    subscription = {"url": receiver.url("/missed"), "event_types": ["call.missed"]}
    (await hooks.post("/v1/webhooks/subscriptions", subscription)).expect(201)
    body = {"to": number, "hangup_after_ringing_seconds": 1}
    (await hooks.post("/v1/sandbox/inbound", body)).expect(201)
    told = await receiver.event("call.missed", "/missed")
    assert (told.json["data"]["to"], told.json["data"]["reason"]) == (number, "caller_hangup")
