"""Phone numbers: purchase, list, registration and binding (telephony specification, Phone numbers)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.clients.agent import Agent
from tests.acceptance.clients.http import Api
from tests.acceptance.clients.rtp import level
from tests.acceptance.clients.waiting import appears
from tests.acceptance.clients.webhooks import Receiver, assert_signed
from tests.acceptance.resources import CALL, META, NUMBER, PAGE, PURCHASE, WIRING
from tests.acceptance.shapes import assert_fits, assert_platform_error, uuid_text
from tests.acceptance.stage import Customer, Line, NewCustomer, mobile
from tests.support.server_process import ServerProcess

UNKNOWN = "01a1ffc4-0000-7000-8000-000000000000"
STREAM = {"target": "media_stream", "stream_url": "wss://bot.example.com/ws", "sample_rate": 8000}


@pytest.fixture(scope="module")
def customer(new_customer: NewCustomer) -> Customer:
    """A customer who can pay for some numbers."""
    return new_customer(100_000)


async def offered(api: Api) -> dict[str, Any]:
    """A number for sale."""
    listed = (await api.get("/v1/dids/available")).expect(200).data
    # Those of other names fail in a way of their own.
    found: dict[str, Any] = next(one for one in listed if not one["live_ref"].startswith("sandbox-"))
    return found


async def bought(api: Api) -> dict[str, Any]:
    """A number that was just bought."""
    number = await offered(api)
    reply = await api.post("/v1/dids/purchase-live", {"live_ref": number["live_ref"]})
    made: dict[str, Any] = reply.expect(201).data
    return made


def wiring(number: dict[str, Any], part: str) -> str:
    """Path of one part of a number's wiring."""
    return f"/v1/phone-numbers/{number['phone_number_id']}/{part}"


async def test_a_purchase_gives_ownership_alone(api: Api, new_customer: NewCustomer) -> None:
    api = api.with_key(new_customer(5000).key)
    number = await offered(api)
    total = number["setup_cost"] + 2 * number["monthly_cost"]
    order = {
        "live_ref": number["live_ref"],
        "friendly_name": "Sales",
        "months": 2,
        "acknowledged_total": total,
    }
    reply = (await api.post("/v1/dids/purchase-live", order)).expect(201)
    assert_fits(reply.body, {"data": PURCHASE, "meta": META})
    made = reply.data
    assert made["number"] == number["number"]
    assert made["total_charged"] == total
    assert made["new_wallet_balance"] == 5000 - total

    listed = (await api.get("/v1/phone-numbers")).expect(200)
    assert_fits(listed.body, {"data": [NUMBER], "meta": PAGE})
    (owned,) = listed.data
    assert (owned["id"], owned["number"]) == (made["phone_number_id"], made["number"])
    assert (owned["friendly_name"], owned["status"]) == ("Sales", "active")
    state = (await api.get(wiring(made, "telephony"))).expect(200)
    assert_fits(state.body, {"data": WIRING})
    flags = ("carrier_registered", "outbound_capable", "inbound_bound")
    assert not any(state.data[name] for name in flags), state.data
    call = {"from": made["number"], "to": "+919800000003", "verbs": [{"verb": "hangup"}]}
    assert_platform_error(await api.post("/v1/calls", call), 403, "NUMBER_NOT_OWNED")


async def test_a_number_that_somebody_buys_meanwhile(api: Api) -> None:
    reply = await api.post("/v1/dids/purchase-live", {"live_ref": "sandbox-snatched"})
    assert_platform_error(reply, 409, "NUMBER_NOT_OWNED")


async def test_the_second_buyer_of_a_number_is_told(api: Api, stranger: Customer) -> None:
    number = await offered(api)
    order = {"live_ref": number["live_ref"]}
    (await api.post("/v1/dids/purchase-live", order)).expect(201)
    second = await api.with_key(stranger.key).post("/v1/dids/purchase-live", order)
    assert_platform_error(second, 409, "NUMBER_NOT_OWNED")


async def test_a_changed_price_buys_nothing(api: Api) -> None:
    number = await offered(api)
    order = {"live_ref": number["live_ref"], "months": 1, "acknowledged_total": 1}
    assert_platform_error(await api.post("/v1/dids/purchase-live", order), 409, "QUOTE_STALE")
    numbers = (await api.get("/v1/phone-numbers", per_page=100)).expect(200).data
    assert number["number"] not in [owned["number"] for owned in numbers]


async def test_purchases_that_cannot_be_made(
    api: Api, server: ServerProcess, new_customer: NewCustomer
) -> None:
    path, order = "/v1/dids/purchase-live", {"live_ref": (await offered(api))["live_ref"]}
    assert_platform_error(await api.post(path, {}), 400, "VALIDATION_ERROR", "live_ref")
    wrong = {**order, "months": 0, "friendly_name": 7}
    assert_platform_error(await api.post(path, wrong), 400, "VALIDATION_ERROR", "months", "friendly_name")
    assert_platform_error(await api.post(path, {"live_ref": "did_unknown"}), 404, "NOT_FOUND")
    assert_platform_error(await api.with_key(None).post(path, order), 401, "UNAUTHORIZED")
    poor = api.with_key(new_customer(0).key)
    assert_platform_error(await poor.post(path, order), 402, "INSUFFICIENT_BALANCE")
    unknown = server.command("accounts", "create", "--name", "New", "--balance", "5000")["api_key"]
    assert_platform_error(await api.with_key(unknown).post(path, order), 403, "KYC_REQUIRED")


async def test_a_released_number_is_not_one_that_somebody_took(api: Api) -> None:
    number = await offered(api)
    order = {"live_ref": number["live_ref"]}
    made = (await api.post("/v1/dids/purchase-live", order)).expect(201).data
    (await api.delete(f"/v1/phone-numbers/{made['phone_number_id']}")).expect(204)
    again = await api.post("/v1/dids/purchase-live", order)
    if again.status != 201:
        assert_platform_error(again, 404, "NOT_FOUND")


async def test_numbers_are_listed_in_pages_by_their_fields(api: Api, new_customer: NewCustomer) -> None:
    api = api.with_key(new_customer(5000).key)
    first, second = await bought(api), await bought(api)
    listed = (await api.get("/v1/phone-numbers")).expect(200)
    assert [number["number"] for number in listed.data] == [second["number"], first["number"]]
    assert_fits(listed.meta, {"total": 2, "page": 1, "per_page": 20, "total_pages": 1})
    page = (await api.get("/v1/phone-numbers", page=2, per_page=1)).expect(200)
    assert [number["number"] for number in page.data] == [first["number"]]
    assert_fits(page.meta, {"total": 2, "page": 2, "per_page": 1, "total_pages": 2})
    kind = listed.data[0]["number_type"]
    for query in ({"status": "active"}, {"number_type": kind}, {"region": second["number"][:5]}):
        found = (await api.get("/v1/phone-numbers", **query)).expect(200).data
        assert second["number"] in [number["number"] for number in found], query
    assert (await api.get("/v1/phone-numbers", status="suspended")).expect(200).data == []


async def test_a_wrong_filter_of_numbers_is_refused(api: Api) -> None:
    for name, value in (("status", "lost"), ("number_type", "pink"), ("page", "-1"), ("per_page", "0")):
        reply = await api.get("/v1/phone-numbers", **{name: value})
        assert_platform_error(reply, 400, "VALIDATION_ERROR", name)
    assert_platform_error(await api.with_key(None).get("/v1/phone-numbers"), 401, "UNAUTHORIZED")


async def test_registering_a_number_is_idempotent(api: Api) -> None:
    made = await bought(api)
    for _ in range(2):
        registered = (await api.post(wiring(made, "carrier"))).expect(200)
        assert_fits(registered.body, {"data": WIRING})
        assert registered.data["carrier_registered"] and registered.data["outbound_capable"]
        assert not registered.data["inbound_bound"]
    call = {"from": made["number"], "to": "+919800000003", "verbs": [{"verb": "hangup"}]}
    (await api.post("/v1/calls", call)).expect(201)
    gone = (await api.delete(wiring(made, "carrier"))).expect(200)
    assert gone.data["status"] == "deregistered"
    state = (await api.get(wiring(made, "telephony"))).expect(200).data
    assert not state["carrier_registered"] and not state["outbound_capable"]
    assert_platform_error(await api.post("/v1/calls", call), 403, "NUMBER_NOT_OWNED")


async def test_a_bound_number_is_deregistered_by_force_alone(api: Api) -> None:
    made = await bought(api)
    bound = (await api.put(wiring(made, "inbound"), STREAM)).expect(200)
    assert_fits(bound.body, {"data": WIRING})
    assert bound.data["carrier_registered"] and bound.data["inbound_bound"]
    assert bound.data["inbound_target"] == "media_stream"
    assert_platform_error(await api.delete(wiring(made, "carrier")), 409, "inbound_bound")
    (await api.delete(wiring(made, "carrier"), force="true")).expect(200)
    state = (await api.get(wiring(made, "telephony"))).expect(200).data
    assert not state["carrier_registered"]


async def test_a_number_bound_elsewhere_is_taken_over_by_force_alone(api: Api, customer: Customer) -> None:
    made = await bought(api)
    agents = api.with_key(customer.key_of("assistant"))
    agent_id = (await agents.post("/api/v1/agents", {"name": "Asha"})).expect(201).data["id"]
    spoken = {"target": "voice_agent", "agent_id": agent_id, "workspace_id": UNKNOWN}
    bound = (await api.put(wiring(made, "inbound"), spoken)).expect(200).data
    assert_fits(bound, {**WIRING, "agent_id": agent_id, "workspace_id": uuid_text})
    hook = {"target": "webhook", "webhook_url": "https://shop.example.com/calls", "webhook_method": "GET"}
    assert_platform_error(await api.put(wiring(made, "inbound"), hook), 409, "inbound_conflict")
    taken = (await api.put(wiring(made, "inbound"), {**hook, "force": True})).expect(200).data
    assert taken["inbound_target"] == "webhook" and "agent_id" not in taken
    listed = (await api.get("/v1/phone-numbers", per_page=100)).expect(200).data
    (shown,) = [number for number in listed if number["id"] == made["phone_number_id"]]
    assert shown["inbound_target_type"] == "webhook"


async def test_an_unbound_number_stays_registered(api: Api) -> None:
    made = await bought(api)
    (await api.put(wiring(made, "inbound"), STREAM)).expect(200)
    freed = (await api.delete(wiring(made, "inbound"))).expect(200)
    assert_fits(freed.body, {"data": WIRING})
    assert not freed.data["inbound_bound"] and freed.data["carrier_registered"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"target": "media_stream"}, "stream_url"),
        ({"target": "media_stream", "stream_url": "https://bot.example.com/ws"}, "stream_url"),
        ({**STREAM, "sample_rate": 44100}, "sample_rate"),
        ({"target": "webhook"}, "webhook_url"),
        ({"target": "voice_agent", "workspace_id": UNKNOWN}, "agent_id"),
        ({"target": "voice_agent", "agent_id": UNKNOWN}, "workspace_id"),
        ({"target": "voice_agent", "agent_id": UNKNOWN, "workspace_id": UNKNOWN}, "agent_id"),
    ],
)
async def test_wrong_fields_of_a_target_are_refused(
    api: Api, customer: Customer, body: dict[str, Any], field: str
) -> None:
    _, number_id = customer.lease()
    error = assert_platform_error(
        await api.put(f"/v1/phone-numbers/{number_id}/inbound", body), 400, "bind_failed"
    )
    assert field in [found["field"] for found in error["details"]["errors"]], error


async def test_an_invalid_body_of_a_binding_is_refused(api: Api, customer: Customer) -> None:
    _, number_id = customer.lease()
    path = f"/v1/phone-numbers/{number_id}/inbound"
    assert_platform_error(await api.put(path, {}), 400, "validation", "target")
    assert_platform_error(await api.put(path, {**STREAM, "colour": 1}), 400, "validation", "colour")


async def test_numbers_that_are_not_there_or_not_ones_own(api: Api, stranger: Customer) -> None:
    _, others = stranger.lease()
    rows: tuple[tuple[str, str, Any], ...] = (
        *(("GET", "telephony", None), ("POST", "carrier", None), ("DELETE", "carrier", None)),
        *(("PUT", "inbound", STREAM), ("DELETE", "inbound", None)),
    )
    for method, part, body in rows:
        bad = await api.request(method, f"/v1/phone-numbers/seven/{part}", body)
        assert_platform_error(bad, 400, "validation")
        for number_id in (UNKNOWN, others):
            gone = await api.request(method, f"/v1/phone-numbers/{number_id}/{part}", body)
            assert_platform_error(gone, 404, "not_found")
        path = f"/v1/phone-numbers/{others}/{part}"
        assert_platform_error(await api.with_key(None).request(method, path, body), 401, "UNAUTHORIZED")


# Calls to bound numbers


async def test_a_call_to_a_number_bound_to_a_stream_reaches_the_agent(line: Line, agent: Agent) -> None:
    bound = await line.bind(target="media_stream", stream_url=agent.url(), sample_rate=16000)
    assert bound["inbound_target"] == "media_stream"
    call = line.phone.dial(line.number, mobile())
    stream = await agent.connected()
    started = (await stream.frame("start"))["start"]
    assert (started["direction"], started["from"], started["to"]) == ("inbound", mobile(), line.number)
    assert started["media_format"]["sample_rate"] == "16000"
    await call.until_answered()
    await call.hang_up()
    stopped = (await stream.frame("stop"))["stop"]
    assert (stopped["reason"], stopped["detail"]) == ("callended", "caller_hangup")


async def test_a_call_to_a_number_bound_to_a_webhook_asks_it(
    line: Line, receiver: Receiver, customer: Customer
) -> None:
    receiver.answers["/calls"] = lambda _: [
        {"verb": "answer"},
        {"verb": "play", "url": "prompt:en/welcome"},
        {"verb": "hangup"},
    ]
    await line.bind(
        target="webhook",
        webhook_url=receiver.url("/calls"),
        status_webhook_url=receiver.url("/status"),
    )
    call = await line.phone.dial(line.number, mobile()).until_answered()
    asked = await receiver.event("call.incoming", "/calls")
    assert asked.method == "POST"
    told = asked.json["data"]
    assert (told["from"], told["to"], told["direction"]) == (mobile(), line.number, "inbound")
    assert told["phone_number_id"] == line.number_id and told["sip_call_id"] == call.call_id
    assert_signed(asked, customer.webhook_secret)
    await call.until_ended()
    assert level(call.rtp.heard()) > 300
    ended = await receiver.event("call.completed", "/status")
    assert_fits(ended.json["data"], CALL)
    assert ended.json["data"]["call_sid"] == told["call_sid"]
    assert_signed(ended, customer.webhook_secret)


async def test_a_webhook_may_be_asked_by_get(line: Line, receiver: Receiver) -> None:
    receiver.answers["/calls"] = lambda _: [{"verb": "reject", "status": 486}]
    await line.bind(target="webhook", webhook_url=receiver.url("/calls"), webhook_method="GET")
    call = await line.phone.dial(line.number, mobile()).until_ended()
    assert call.status == 486
    asked = await receiver.request_to("/calls")
    assert (asked.method, asked.query["to"], asked.query["event"]) == ("GET", line.number, "call.incoming")


async def test_a_call_to_a_number_bound_to_a_voice_agent_hears_it(line: Line, customer: Customer) -> None:
    agents = line.api.with_key(customer.key_of("assistant"))
    made = await agents.post("/api/v1/agents", {"name": "Asha", "greeting": "Good morning, this is Asha."})
    agent_id = made.expect(201).data["id"]
    await line.bind(target="voice_agent", agent_id=agent_id, workspace_id=UNKNOWN)
    call = await line.phone.dial(line.number, mobile()).until_answered()
    await appears(lambda: level(call.rtp.heard()[-4000:]) > 300, "the greeting")
    await call.hang_up()


async def test_a_call_to_an_unbound_number_is_turned_away(line: Line) -> None:
    call = await line.phone.dial(line.number, mobile()).until_ended()
    assert call.status == 480
    nobody = await line.phone.dial("+918047999998", mobile()).until_ended()
    assert nobody.status == 404
