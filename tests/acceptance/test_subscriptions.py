"""Webhook subscriptions of missed calls: managing, testing, log and replay (masking specification)."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from tests.acceptance.clients.http import Api
from tests.acceptance.clients.waiting import appears
from tests.acceptance.clients.webhooks import Received, Receiver, assert_signed
from tests.acceptance.resources import DELIVERY, MISSED_CALL, SUBSCRIPTION
from tests.acceptance.shapes import assert_fits, assert_plain_error, moment, uuid_text
from tests.acceptance.stage import Customer, Line, NewCustomer, mobile
from tests.support.ports import free_port
from tests.support.server_process import ServerProcess

PATH = "/v1/webhooks/subscriptions"
SECRET = "a long secret of the shop"
UNKNOWN = "01a1ffc4-0000-7000-8000-000000000000"


@pytest.fixture
def customer(new_customer: NewCustomer) -> Customer:
    """A customer who gets events of one test alone."""
    return new_customer()


@pytest.fixture
async def hooks(session: aiohttp.ClientSession, server: ServerProcess, customer: Customer) -> Api:
    """The API for a key of subscriptions, whose scopes must be named."""
    return Api(session, server.url, customer.key_of("platform", "webhooks.read", "webhooks.write"))


async def subscribed(hooks: Api, url: str, **fields: Any) -> dict[str, Any]:
    """A new subscription of missed calls."""
    body = {"url": url, "event_types": ["call.missed"], "secret": SECRET, **fields}
    made: dict[str, Any] = (await hooks.post(PATH, body)).expect(201).data
    return made


async def missed(line: Line) -> dict[str, Any]:
    """A call to the line's number that nobody answers; what is listed of it."""
    call = await line.phone.dial(line.number, mobile()).until_ended()
    assert call.status == 480
    listed: list[dict[str, Any]] = (await line.api.get("/v1/calls", to=line.number)).expect(200).data
    return listed[0]


async def test_a_subscription_is_created_listed_changed_and_deleted(hooks: Api, receiver: Receiver) -> None:
    body = {"url": receiver.url("/missed"), "event_types": ["call.missed"], "secret": SECRET}
    reply = (await hooks.post(PATH, body)).expect(201)
    assert_fits(reply.body, {"data": SUBSCRIPTION})
    made = reply.data
    assert (made["url"], made["event_types"]) == (body["url"], ["call.missed"])
    assert (made["has_secret"], made["is_active"]) == (True, True)
    assert SECRET.encode() not in reply.content
    unsigned = (await hooks.post(PATH, {"url": receiver.url(), "event_types": ["call.missed"]})).expect(201)
    assert unsigned.data["has_secret"] is False
    listed = (await hooks.get(PATH)).expect(200)
    assert_fits(listed.body, {"data": [SUBSCRIPTION]})
    assert {item["id"] for item in listed.data} == {made["id"], unsigned.data["id"]}

    path = f"{PATH}/{made['id']}"
    changed = (await hooks.patch(path, {"url": receiver.url("/other"), "is_active": False})).expect(200)
    assert_fits(changed.body, {"data": SUBSCRIPTION})
    assert (changed.data["url"], changed.data["is_active"]) == (receiver.url("/other"), False)
    assert changed.data["has_secret"] is True
    assert (await hooks.patch(path, {"secret": None})).expect(200).data["has_secret"] is False
    assert (await hooks.delete(path)).expect(204).content == b""
    for method, change in (("PATCH", {"is_active": True}), ("DELETE", None)):
        assert_plain_error(await hooks.request(method, path, change), 404)


async def test_wrong_subscriptions_are_refused_with_a_plain_text(hooks: Api, receiver: Receiver) -> None:
    for body in (
        {},
        {"url": receiver.url()},
        {"url": receiver.url(), "event_types": ["call.started"]},
        {"url": receiver.url(), "event_types": []},
        {"url": "ftp://shop.example.com", "event_types": ["call.missed"]},
        {"url": receiver.url(), "event_types": ["call.missed"], "secret": "short"},
    ):
        assert_plain_error(await hooks.post(PATH, body), 400)
    made = await subscribed(hooks, receiver.url())
    assert_plain_error(await hooks.patch(f"{PATH}/{made['id']}", {"url": "seven"}), 400)


async def test_keys_of_subscriptions(hooks: Api, customer: Customer) -> None:
    for key in (None, "vp_unknown"):
        assert_plain_error(await hooks.with_key(key).get(PATH), 401)
    # The two scopes are never granted unless they are named.
    assert_plain_error(await hooks.with_key(customer.key).get(PATH), 403)
    reader = hooks.with_key(customer.key_of("platform", "webhooks.read"))
    (await reader.get(PATH)).expect(200)
    assert_plain_error(await reader.post(PATH, {}), 403)


async def test_another_account_does_not_see_a_subscription(
    hooks: Api, receiver: Receiver, new_customer: NewCustomer
) -> None:
    made = await subscribed(hooks, receiver.url())
    other = hooks.with_key(new_customer().key_of("platform", "webhooks.read", "webhooks.write"))
    assert (await other.get(PATH)).expect(200).data == []
    for sid in (made["id"], UNKNOWN):
        for method, path in (
            *(
                ("DELETE", f"{PATH}/{sid}"),
                ("POST", f"{PATH}/{sid}/test"),
                ("GET", f"{PATH}/{sid}/deliveries"),
            ),
            ("POST", f"{PATH}/{sid}/deliveries/{UNKNOWN}/replay"),
            ("POST", f"{PATH}/{sid}/deliveries/replay"),
        ):
            body = {"status": "failed"} if path.endswith("deliveries/replay") else None
            assert_plain_error(await other.request(method, path, body), 404)


async def test_a_missed_call_is_told_once_and_signed(hooks: Api, line: Line, receiver: Receiver) -> None:
    made = await subscribed(hooks, receiver.url("/missed"))
    call = await missed(line)
    told = await receiver.event("call.missed", "/missed")
    assert_fits(told.json, MISSED_CALL)
    data = told.json["data"]
    assert (data["call_sid"], data["from"], data["to"]) == (call["call_sid"], mobile(), line.number)
    assert data["phone_number_id"] == line.number_id
    assert_signed(told, SECRET)
    path = f"{PATH}/{made['id']}/deliveries"
    (delivery,) = await hooks.until(path, lambda found: found and found[0]["status"] == "delivered")
    assert_fits(delivery, DELIVERY)
    assert (delivery["id"], delivery["subscription_id"]) == (told.json["id"], made["id"])
    assert (delivery["event_type"], delivery["call_sid"]) == ("call.missed", call["call_sid"])
    assert (delivery["attempts"], delivery["response_code"], delivery["error"]) == (1, 204, "")


async def test_a_call_whose_caller_gives_up_is_missed(hooks: Api, line: Line, receiver: Receiver) -> None:
    await subscribed(hooks, receiver.url("/missed"))
    await line.bind(target="missed_call", timeout=30)
    call = line.phone.dial(line.number, mobile())
    await call.hang_up()
    assert call.status == 487
    told = await receiver.event("call.missed", "/missed")
    assert_fits(told.json, MISSED_CALL)
    assert told.json["data"]["reason"] == "caller_hangup"


async def test_an_answered_call_and_a_paused_subscription_tell_nothing(
    hooks: Api, line: Line, receiver: Receiver
) -> None:
    await subscribed(hooks, receiver.url("/missed"))
    paused = await subscribed(hooks, receiver.url("/paused"))
    (await hooks.patch(f"{PATH}/{paused['id']}", {"is_active": False})).expect(200)
    receiver.answers["/calls"] = lambda _: [{"verb": "answer"}, {"verb": "hangup"}]
    await line.bind(target="webhook", webhook_url=receiver.url("/calls"))
    await line.phone.dial(line.number, mobile(2)).until_ended()
    await line.api.delete(f"/v1/phone-numbers/{line.number_id}/inbound")
    await missed(line)
    told = await receiver.event("call.missed", "/missed")
    # Of the two calls the later one is told first: nothing was to be told of the earlier one.
    assert told.json["data"]["from"] == mobile(1)
    assert receiver.events("/paused") == []
    assert (await hooks.get(f"{PATH}/{paused['id']}/deliveries")).expect(200).data == []


async def test_a_destination_is_tested(hooks: Api, receiver: Receiver) -> None:
    made = await subscribed(hooks, receiver.url("/missed"))
    outcome = {"success": bool, "status_code": int, "error": str}
    reply = (await hooks.post(f"{PATH}/{made['id']}/test")).expect(200)
    assert_fits(reply.body, {"data": outcome})
    assert reply.data == {"success": True, "status_code": 204, "error": ""}
    told = await receiver.event("webhook.test", "/missed")
    assert_fits(told.json, {"id": uuid_text, "created_at": moment, "data": {"message": "test"}})
    assert_signed(told, SECRET)
    receiver.answers["/missed"] = lambda _: 500
    failed = (await hooks.post(f"{PATH}/{made['id']}/test")).expect(200)
    assert_fits(failed.body, {"data": {**outcome, "success": False, "status_code": 500}})
    assert failed.data["error"]


async def test_a_destination_that_is_not_there_is_told_in_plain_words(hooks: Api) -> None:
    port = free_port()
    made = await subscribed(hooks, f"http://127.0.0.1:{port}/missed")
    reply = (await hooks.post(f"{PATH}/{made['id']}/test")).expect(200)
    assert (reply.data["success"], reply.data["status_code"]) == (False, 0)
    assert reply.data["error"]
    for word in ("Connect call", "ssl:", "[Errno", str(port)):
        assert word not in reply.data["error"], reply.data


async def test_failed_deliveries_are_replayed(hooks: Api, line: Line, receiver: Receiver) -> None:
    made = await subscribed(hooks, receiver.url("/missed"))
    path = f"{PATH}/{made['id']}/deliveries"
    # 410 ends the attempts, and pauses the subscription.
    receiver.answers["/missed"] = lambda _: 410
    await missed(line)
    (failed,) = await hooks.until(path, lambda found: found and found[0]["status"] == "failed")
    assert_fits(failed, DELIVERY)
    assert failed["response_code"] == 410 and failed["error"]
    assert (await hooks.get(PATH)).expect(200).data[0]["is_active"] is False
    assert_plain_error(await hooks.post(f"{path}/replay", {"status": "failed"}), 409)

    changed = {"is_active": True, "url": receiver.url("/repaired")}
    (await hooks.patch(f"{PATH}/{made['id']}", changed)).expect(200)
    for window in ({"until": "2026-01-01T00:00:00Z"}, {"since": "2099-01-01T00:00:00Z"}):
        nothing = (await hooks.post(f"{path}/replay", {"status": "failed", **window})).expect(200)
        assert nothing.data["replayed"] == 0
    window = {"since": "2026-01-01T00:00:00Z", "until": "2099-01-01T00:00:00Z"}
    replayed = (await hooks.post(f"{path}/replay", {"status": "failed", **window})).expect(200)
    assert_fits(replayed.body, {"data": {"replayed": 1, "truncated": False}})
    told = await receiver.event("call.missed", "/repaired")
    assert told.json["id"] == failed["id"]
    await hooks.until(path, lambda found: found[0]["status"] == "delivered")
    one = (await hooks.post(f"{path}/{failed['id']}/replay")).expect(200)
    assert_fits(one.body, {"data": {"replayed": 1}})

    def came_again() -> list[Received] | None:
        again = [request for request in receiver.requests if request.path == "/repaired"]
        return again if len(again) == 2 else None

    first, second = await appears(came_again, "the replayed delivery")
    assert first.body == second.body
    assert_plain_error(await hooks.post(f"{path}/{UNKNOWN}/replay"), 404)
    for wrong in ({"status": "delivered"}, {"since": "yesterday"}):
        assert_plain_error(await hooks.post(f"{path}/replay", wrong), 400)


async def test_the_delivery_log_is_limited_and_newest_first(
    hooks: Api, line: Line, receiver: Receiver
) -> None:
    made = await subscribed(hooks, receiver.url("/missed"))
    calls = [(await missed(line))["call_sid"] for _ in range(3)]
    path = f"{PATH}/{made['id']}/deliveries"
    log = await hooks.until(path, lambda found: len(found) == 3)
    assert [delivery["call_sid"] for delivery in log] == calls[::-1]
    newest = (await hooks.get(path, limit=2)).expect(200).data
    assert [delivery["call_sid"] for delivery in newest] == calls[:0:-1]
    (await hooks.get(path, limit=200)).expect(200)
    for limit in ("0", "201", "many"):
        assert_plain_error(await hooks.get(path, limit=limit), 400)
