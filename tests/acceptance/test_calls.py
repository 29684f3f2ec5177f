"""Calls: placing, listing, showing and ending them (telephony specification, Calls)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.clients.agent import Agent
from tests.acceptance.clients.http import Api
from tests.acceptance.clients.phone import Manner
from tests.acceptance.clients.rtp import level, tone
from tests.acceptance.clients.waiting import appears
from tests.acceptance.clients.webhooks import Receiver, assert_signed
from tests.acceptance.resources import CALL, META, PAGE, STREAM
from tests.acceptance.shapes import assert_fits, assert_platform_error, moment, uuid_text
from tests.acceptance.stage import ENDED, Customer, Line, NewCustomer, mobile

UNKNOWN = "01a1ffc4-0000-7000-8000-000000000000"


def call_path(placed: dict[str, Any]) -> str:
    """Path of one call."""
    return f"/v1/Accounts/{placed['account_sid']}/Calls/{placed['call_sid']}"


async def test_a_call_rings_is_answered_and_ends(line: Line, receiver: Receiver, customer: Customer) -> None:
    body = {
        "from": line.number,
        "to": mobile(),
        "verbs": [{"verb": "pause", "length": 0.5}, {"verb": "hangup"}],
        "status_webhook_url": receiver.url("/status"),
        "tag": "order-7",
    }
    reply = (await line.api.post("/v1/calls", body)).expect(201)
    assert_fits(reply.body, {"data": CALL, "meta": META})
    placed = reply.data
    assert (placed["direction"], placed["from"], placed["to"]) == ("outbound", line.number, mobile())
    assert placed["tag"] == "order-7" and placed["sid"] == placed["call_sid"]
    assert placed["account_sid"] == customer.account_sid

    rung = await line.phone.rings(mobile())
    assert rung.shown == line.number
    await rung.until_answered()
    await rung.until_ended()
    assert rung.requests[-1].method == "BYE"

    ended = await line.ended(placed)
    assert_fits(ended, CALL)
    assert (ended["status"], ended["hangup_cause"], ended["hangup_cause_code"]) == (
        *("completed", "NORMAL_CLEARING"),
        16,
    )
    assert ended["sip_call_id"] == rung.call_id
    assert ended["phone_number_id"] == line.number_id and ended["carrier_sid"] == line.carrier_sid
    assert_fits(
        ended,
        {
            **dict.fromkeys(("ringing_at", "answered_at", "ended_at"), moment),
            "duration_sec": int,
            "bill_duration_sec": int,
        },
    )
    assert ended["created_at"] <= ended["ringing_at"] <= ended["answered_at"] <= ended["ended_at"]
    assert ended["price"] > 0

    await receiver.event("call.completed", "/status")
    events = ["call.initiated", "call.ringing", "call.answered", "call.completed"]
    assert receiver.events("/status") == events
    for sequence, received in enumerate(receiver.requests, 1):
        assert received.method == "POST"
        event = {"event": str, "event_id": uuid_text, "timestamp": moment, "sequence": sequence, "data": dict}
        assert_fits(received.json, event)
        assert received.json["data"]["call_sid"] == placed["call_sid"]
        assert_signed(received, customer.webhook_secret)
    assert receiver.requests[-1].json["data"]["status"] == "completed"


async def test_a_call_for_a_streaming_agent_carries_audio_both_ways(
    line: Line, agent: Agent, customer: Customer
) -> None:
    placed = await line.api.post(
        f"/v1/Accounts/{customer.account_sid}/Calls",
        {
            "from": line.number,
            "to": mobile(),
            "stream_url": agent.url("/bot?customer=42"),
            "sample_rate": 8000,
        },
    )
    call = placed.expect(201).data
    assert_fits(placed.body, {"data": CALL, "meta": META})
    rung = await (await line.phone.rings(mobile())).until_answered()
    stream = await agent.connected()
    started = await stream.frame("start")
    assert [frame["event"] for frame in stream.frames[:2]] == ["connected", "start"]
    assert started["start"]["call_sid"] == call["call_sid"]
    assert started["start"]["from"] == line.number and started["start"]["to"] == mobile()
    assert started["start"]["custom_parameters"] == {"customer": "42"}

    await stream.say(tone(440, 1.0))
    rung.rtp.say(tone(700, 1.0))
    await appears(lambda: level(rung.rtp.heard()[-800:]) > 2000, "the agent's audio at the telephone")
    await appears(lambda: level(stream.heard[-800:]) > 2000, "the telephone's audio at the agent")

    path = call_path(call)
    shown = (await line.api.get(path)).expect(200).data
    assert_fits(shown, {**CALL, "stream": STREAM, "status": "in-progress"})
    assert (shown["stream"]["protocol"], shown["stream"]["sample_rate"]) == ("exotel", 8000)
    deleted = (await line.api.delete(path)).expect(200)
    assert_fits(deleted.body, {"data": CALL, "meta": META})
    await rung.until_ended()
    assert (await stream.frame("stop"))["stop"]["call_sid"] == call["call_sid"]
    assert await stream.until_closed() == 1000
    ended = await line.ended(call)
    assert (ended["status"], ended["hangup_source"]) == ("completed", "api")
    assert_platform_error(await line.api.delete(path), 409, "CALL_ENDED")


async def test_a_created_call_shows_its_stream(line: Line, agent: Agent, customer: Customer) -> None:
    path = f"/v1/Accounts/{customer.account_sid}/Calls"
    body = {"from": line.number, "to": mobile(), "stream_url": agent.url(), "sample_rate": 16000}
    call = (await line.api.post(path, body)).expect(201).data
    assert_fits(call["stream"], {**STREAM, "stream_sid": uuid_text, "stream_url": agent.url()}, "stream")
    assert call["stream"]["sample_rate"] == 16000
    started = await (await agent.connected()).frame("start")
    assert started["stream_sid"] == call["stream"]["stream_sid"]


@pytest.mark.parametrize(
    ("status", "ended", "cause", "code"),
    [
        (486, "busy", "USER_BUSY", 17),
        (600, "busy", "USER_BUSY", 17),
        (603, "busy", "CALL_REJECTED", 21),
        (480, "no-answer", "NO_ANSWER", 19),
        (408, "no-answer", "NO_USER_RESPONSE", 18),
        (403, "failed", "CALL_REJECTED", 21),
        (404, "failed", "UNALLOCATED_NUMBER", 1),
        (410, "failed", "NUMBER_CHANGED", 22),
        (484, "failed", "INVALID_NUMBER_FORMAT", 28),
        (488, "failed", "BEARERCAPABILITY_NOTAVAIL", 58),
        (500, "failed", "NORMAL_TEMPORARY_FAILURE", 41),
        (502, "failed", "DESTINATION_OUT_OF_ORDER", 27),
        (503, "failed", "NORMAL_CIRCUIT_CONGESTION", 34),
        (504, "failed", "RECOVERY_ON_TIMER_EXPIRE", 102),
    ],
)
async def test_a_refused_call_has_the_status_and_cause_of_the_refusal(
    line: Line, status: int, ended: str, cause: str, code: int
) -> None:
    line.phone.manner = Manner(status=status)
    found = await line.ended(await line.place(mobile()))
    assert (found["status"], found["hangup_cause"], found["hangup_cause_code"]) == (ended, cause, code)
    assert found["sip_status"] == status
    assert found["answered_at"] is None and found["price"] in (0, None)


async def test_nobody_answers_within_the_timeout(line: Line) -> None:
    line.phone.manner = Manner(rings_s=None)
    found = await line.ended(await line.place(mobile(), timeout=5))
    assert (found["status"], found["hangup_cause"]) == ("no-answer", "NO_ANSWER")
    rung = await line.phone.rings(mobile())
    assert rung.status == 487


async def test_a_ringing_call_is_canceled(line: Line) -> None:
    line.phone.manner = Manner(rings_s=None)
    placed = await line.place(mobile())
    rung = await line.phone.rings(mobile())
    (await line.api.delete(call_path(placed))).expect(200)
    found = await line.ended(placed)
    assert (found["status"], found["hangup_cause"]) == ("canceled", "ORIGINATOR_CANCEL")
    await rung.until_ended()


async def test_the_callee_hangs_up(line: Line) -> None:
    placed, rung = await line.connect(mobile())
    await rung.hang_up()
    found = await line.ended(placed)
    assert (found["status"], found["hangup_source"]) == ("completed", "callee")


async def test_a_call_ends_at_its_time_limit(line: Line) -> None:
    placed, rung = await line.connect(mobile(), time_limit=1)
    await rung.until_ended()
    found = await line.ended(placed)
    assert (found["status"], found["hangup_cause"]) == ("completed", "ALLOTTED_TIMEOUT")
    assert found["hangup_cause_code"] == 802


async def test_a_webhook_is_asked_after_the_answer(line: Line, receiver: Receiver) -> None:
    receiver.answers["/next"] = lambda _: [{"verb": "send_digits", "digits": "42#"}, {"verb": "hangup"}]
    placed, rung = await line.connect(mobile(), webhook_url=receiver.url("/next"))
    asked = await receiver.event("call.answered", "/next")
    assert asked.json["data"]["call_sid"] == placed["call_sid"]
    await rung.until_ended()
    assert rung.rtp.digits == "42#"
    assert (await line.ended(placed))["status"] == "completed"


async def test_headers_and_the_recording_of_a_call(line: Line) -> None:
    verbs = [{"verb": "play", "url": "prompt:en/welcome"}, {"verb": "pause", "length": 60}]
    fields = {"headers": {"X-Order": "7"}, "caller_name": "Shop", "record": True, "verbs": verbs}
    placed, rung = await line.connect(mobile(), **fields)
    assert rung.invite.get("x-order") == "7"
    assert "Shop" in rung.invite.get("from")
    await appears(lambda: level(rung.rtp.heard()) > 300, "the prompt")
    await rung.hang_up()
    path = f"/v1/calls/{placed['call_sid']}/recording"
    await line.api.until(call_path(placed), lambda call: call["recording_url"])
    link = (await line.api.get(path)).expect(200).data
    assert_fits(link, {"url": str, "call_sid": placed["call_sid"]})
    file = (await line.api.with_key(None).get(link["url"])).expect(200)
    assert file.content[:4] == b"RIFF" and file.content[8:12] == b"WAVE"


async def test_a_repeated_request_with_the_same_key_places_one_call(line: Line) -> None:
    line.phone.manner = Manner(status=486)
    body = {"from": line.number, "to": mobile(), "verbs": [{"verb": "hangup"}]}
    first = (await line.api.post("/v1/calls", body, Idempotency_Key="order-7")).expect(201)
    again = (await line.api.post("/v1/calls", body, Idempotency_Key="order-7")).expect(201)
    assert again.data["call_sid"] == first.data["call_sid"]
    assert again.headers["Idempotent-Replayed"] == "true"
    other = await line.api.post("/v1/calls", {**body, "tag": "x"}, Idempotency_Key="order-7")
    assert_platform_error(other, 409, "IDEMPOTENCY_CONFLICT")
    await line.ended(first.data)
    assert len(line.phone.calls) == 1


async def test_every_wrong_field_of_a_call_is_named(line: Line, customer: Customer) -> None:
    wrong = {"from": line.number, "timeout": 4, "colour": "red", "verbs": [{"verb": "sing"}]}
    error = assert_platform_error(await line.api.post("/v1/calls", wrong), 400, "VALIDATION_ERROR")
    fields = {found["field"].partition("[")[0] for found in error["details"]["errors"]}
    assert fields == {"to", "timeout", "colour", "verbs"}
    reply = await line.api.post(
        f"/v1/Accounts/{customer.account_sid}/Calls", {"from": line.number, "to": mobile()}
    )
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "stream_url")
    bad = {"from": line.number, "to": mobile(), "stream_url": "http://bot.example.com", "sample_rate": 44100}
    reply = await line.api.post("/v1/calls", bad)
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "stream_url", "sample_rate")


async def test_a_verb_without_its_items_is_refused_in_plain_words(line: Line) -> None:
    reply = await line.api.post("/v1/calls", {"from": line.number, "to": mobile(), "verbs": []})
    error = assert_platform_error(reply, 400, "VALIDATION_ERROR", "verbs")
    assert "1 items" not in error["details"]["errors"][0]["message"], error


async def test_calls_need_a_valid_key(api: Api) -> None:
    for key in (None, "vp_unknown", "nonsense"):
        for method, path in (
            *(("POST", "/v1/calls"), ("GET", "/v1/calls"), ("POST", f"/v1/Accounts/{UNKNOWN}/Calls")),
            *((verb, f"/v1/Accounts/{UNKNOWN}/Calls/{UNKNOWN}") for verb in ("GET", "DELETE")),
        ):
            assert_platform_error(await api.with_key(key).request(method, path), 401, "UNAUTHORIZED")


async def test_a_caller_id_must_be_on_the_account(line: Line, stranger: Customer) -> None:
    other = line.api.with_key(stranger.key)
    for number in (line.number, "+918047999999"):
        body = {"from": number, "to": mobile(), "verbs": [{"verb": "hangup"}]}
        assert_platform_error(await other.post("/v1/calls", body), 403, "NUMBER_NOT_OWNED")


async def test_a_call_of_another_account_is_forbidden(line: Line, stranger: Customer) -> None:
    placed = await line.place(mobile(), verbs=[{"verb": "hangup"}])
    other = line.api.with_key(stranger.key)
    for method in ("GET", "DELETE"):
        assert_platform_error(await other.request(method, call_path(placed)), 403, "FORBIDDEN")


async def test_an_unknown_call_is_not_found(api: Api, customer: Customer) -> None:
    for method in ("GET", "DELETE"):
        path = f"/v1/Accounts/{customer.account_sid}/Calls/{UNKNOWN}"
        assert_platform_error(await api.request(method, path), 404, "NOT_FOUND")


async def test_an_empty_wallet_places_no_call(line: Line, new_customer: NewCustomer, agent: Agent) -> None:
    poor = new_customer(0)
    number, _ = poor.lease()
    api = line.api.with_key(poor.key)
    body = {"from": number, "to": "+919800000001"}
    reply = await api.post("/v1/calls", {**body, "verbs": [{"verb": "hangup"}]})
    assert_platform_error(reply, 402, "INSUFFICIENT_BALANCE")
    reply = await api.post(
        f"/v1/Accounts/{poor.account_sid}/Calls", {**body, "stream_url": agent.url(), "sample_rate": 8000}
    )
    assert_platform_error(reply, 402, "INSUFFICIENT_BALANCE")
    assert (await api.get("/v1/calls")).data == []


async def test_a_carrier_that_cannot_take_calls_now_is_unavailable(line: Line, agent: Agent) -> None:
    line.phone.manner = Manner(status=503, headers=(("retry-after", "30"),))
    placed = await line.place(mobile())
    assert (await line.ended(placed))["status"] == "failed"
    body = {"from": line.number, "to": mobile()}
    refused = await line.api.post("/v1/calls", {**body, "verbs": [{"verb": "hangup"}]})
    assert_platform_error(refused, 503, "SERVICE_UNAVAILABLE")
    path = f"/v1/Accounts/{placed['account_sid']}/Calls"
    refused = await line.api.post(path, {**body, "stream_url": agent.url(), "sample_rate": 8000})
    assert_platform_error(refused, 503, "SERVICE_UNAVAILABLE")


async def test_a_carrier_that_cannot_take_calls_now_says_when_to_retry(line: Line) -> None:
    line.phone.manner = Manner(status=503, headers=(("retry-after", "30"),))
    await line.ended(await line.place(mobile()))
    body = {"from": line.number, "to": mobile(), "verbs": [{"verb": "hangup"}]}
    refused = (await line.api.post("/v1/calls", body)).expect(503)
    assert 0 < int(refused.headers["Retry-After"]) <= 300


async def test_calls_are_listed_newest_first_in_pages(line: Line, new_customer: NewCustomer) -> None:
    line.phone.manner = Manner(status=486)
    placed = [await line.place(mobile(number)) for number in (1, 2, 3)]
    for call in placed:
        await line.ended(call)
    sids = [call["call_sid"] for call in reversed(placed)]
    listed = (await line.api.get("/v1/calls", **{"from": line.number})).expect(200)
    assert_fits(listed.body, {"data": [CALL], "meta": PAGE})
    assert [call["call_sid"] for call in listed.data] == sids
    assert_fits(listed.meta, {"total": 3, "page": 1, "per_page": 20, "total_pages": 1})
    second = await line.api.get("/v1/calls", **{"from": line.number, "page": "2", "per_page": "2"})
    assert [call["call_sid"] for call in second.expect(200).data] == sids[2:]
    assert_fits(second.meta, {"total": 3, "page": 2, "per_page": 2, "total_pages": 2})
    empty = (await line.api.with_key(new_customer().key).get("/v1/calls")).expect(200)
    assert empty.data == [] and empty.meta["total"] == 0


async def test_calls_are_found_by_their_fields(line: Line) -> None:
    line.phone.manners = {mobile(1): Manner(status=486), mobile(2): Manner(status=480)}
    busy, missed = [await line.ended(await line.place(mobile(number))) for number in (1, 2)]

    async def found(**query: str) -> list[str]:
        listed = await line.api.get("/v1/calls", **{"from": line.number, **query})
        return [call["call_sid"] for call in listed.expect(200).data]

    assert await found(status="busy") == [busy["call_sid"]]
    assert await found(to=mobile(2)) == [missed["call_sid"]]
    assert await found(to=mobile(2).removeprefix("+91")) == [missed["call_sid"]]
    assert await found(direction="inbound") == []
    assert await found(start_date=missed["created_at"]) == [missed["call_sid"]]
    today = missed["created_at"][:10]
    assert len(await found(start_date=busy["created_at"][:10], end_date=today)) == 2
    tomorrow = (datetime.fromisoformat(today) + timedelta(days=1)).date().isoformat()
    assert await found(start_date=tomorrow) == []


async def test_the_end_of_a_period_of_calls_is_included(line: Line) -> None:
    line.phone.manner = Manner(status=486)
    ended = await line.ended(await line.place(mobile()))
    at = ended["created_at"]
    listed = await line.api.get("/v1/calls", **{"from": line.number, "end_date": at})
    assert [call["call_sid"] for call in listed.expect(200).data] == [ended["call_sid"]]
    listed = await line.api.get("/v1/calls", **{"from": line.number, "start_date": at, "end_date": at})
    assert [call["call_sid"] for call in listed.expect(200).data] == [ended["call_sid"]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("status", "gone"),
            ("direction", "sideways"),
            ("start_date", "yesterday"),
            ("end_date", "2026-13-01"),
        ),
        *(("page", "0"), ("per_page", "101"), ("per_page", "many")),
    ],
)
async def test_a_wrong_filter_of_calls_is_refused(api: Api, name: str, value: str) -> None:
    assert_platform_error(await api.get("/v1/calls", **{name: value}), 400, "VALIDATION_ERROR", name)


async def test_a_call_is_shown_and_calls_are_listed_at_both_paths(line: Line, customer: Customer) -> None:
    line.phone.manner = Manner(status=486)
    placed = await line.ended(await line.place(mobile()))
    shown = (await line.api.get(f"/v1/calls/{placed['call_sid']}")).expect(200)
    assert_fits(shown.body, {"data": CALL, "meta": META})
    assert shown.data == placed
    listed = (await line.api.get(f"/v1/Accounts/{customer.account_sid}/Calls")).expect(200)
    assert_fits(listed.body, {"data": [CALL], "meta": PAGE})
    assert placed["call_sid"] in [call["call_sid"] for call in listed.data]
    assert all(call["status"] in ENDED or call["ended_at"] is None for call in listed.data)
