"""Number masking: masked calls, their recordings, logs, statistics and billing (masking specification)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.acceptance.clients.http import Api
from tests.acceptance.clients.phone import Manner, PhoneCall
from tests.acceptance.clients.rtp import level, tone
from tests.acceptance.clients.waiting import appears
from tests.acceptance.clients.webhooks import Receiver, assert_signed
from tests.acceptance.resources import MASKED_CALL, MASKING_STATS
from tests.acceptance.shapes import assert_fits, assert_masking_error, moment, number, uuid_text
from tests.acceptance.stage import Customer, Line, NewCustomer, mobile

CALLS = "/v1/masking/calls"
A, B = mobile(1), mobile(2)
PARTIES = {"party_a": A.removeprefix("+91"), "party_b": B.removeprefix("+91")}
TERMINAL = {"completed", "failed", "no-answer"}
UNKNOWN = "01a1ffc4-0000-7000-8000-000000000000"


@pytest.fixture
def customer(new_customer: NewCustomer) -> Customer:
    """A customer whose only number is the masked one."""
    return new_customer()


async def start(line: Line, **fields: Any) -> dict[str, Any]:
    """Start a masked call between the two parties."""
    made: dict[str, Any] = (await line.api.post(CALLS, {**PARTIES, **fields})).expect(201).data
    return made


async def ended(line: Line, call_sid: str) -> dict[str, Any]:
    """The masked call, once its status is terminal."""
    path = f"{CALLS}/{call_sid}"
    found: dict[str, Any] = await line.api.until(path, lambda call: call["status"] in TERMINAL)
    return found


async def connected(line: Line) -> tuple[PhoneCall, PhoneCall]:
    """Both parties' telephones, once both have answered."""
    first = await (await line.phone.rings(A)).until_answered()
    return first, await (await line.phone.rings(B)).until_answered()


def assert_hidden(call: PhoneCall, other: str, masked: str) -> None:
    """The telephone shows the masked number; the other party's number is in nothing that it was sent."""
    assert call.shown == masked
    for message in (call.invite, *call.requests):
        assert other.removeprefix("+91").encode() not in bytes(message)


async def test_two_parties_talk_and_see_the_masked_number(
    line: Line, receiver: Receiver, customer: Customer
) -> None:
    settings = {"webhook_url": receiver.url("/masking")}
    (await line.api.patch("/v1/masking/settings", settings)).expect(200)
    reply = (await line.api.post(CALLS, PARTIES)).expect(201)
    wanted = {"call_sid": uuid_text, "status": "initiated", **PARTIES, "masked_number": line.number}
    assert_fits(reply.body, {"data": wanted})
    call_sid = reply.data["call_sid"]

    line.phone.manners[A] = Manner(rings_s=0.2)
    first, second = await connected(line)
    first.rtp.say(tone(440, 1.0))
    second.rtp.say(tone(700, 1.0))
    await appears(lambda: level(second.rtp.heard()[-800:]) > 2000, "A's voice at B")
    await appears(lambda: level(first.rtp.heard()[-800:]) > 2000, "B's voice at A")
    assert_hidden(first, B, line.number)
    assert_hidden(second, A, line.number)
    talking = (await line.api.get(f"{CALLS}/{call_sid}")).expect(200)
    assert_fits(talking.body, {"data": MASKED_CALL})
    assert talking.data["status"] == "in-progress"
    await first.hang_up()
    await second.until_ended()

    found = await ended(line, call_sid)
    assert_fits(found, {**MASKED_CALL, **dict.fromkeys(("answered_at", "ended_at"), moment)})
    assert (found["id"], found["direction"], found["status"]) == (call_sid, "click_to_call", "completed")
    assert (found["caller_number"], found["target_number"]) == (A, PARTIES["party_b"])
    assert found["masked_number"] == line.number
    assert found["hangup_cause"] == "NORMAL_CLEARING" and found["price"] > 0
    assert found["bill_duration_sec"] >= found["duration_sec"]

    await receiver.event("masking.call.completed", "/masking")
    statuses = ["initiated", "a_ringing", "a_answered", "b_ringing", "in-progress", "completed"]
    assert receiver.events("/masking") == [f"masking.call.{status}" for status in statuses]
    for received, status in zip(receiver.requests, statuses, strict=True):
        assert_fits(received.json, {"event_id": uuid_text, "timestamp": moment, "data": MASKED_CALL})
        assert (received.json["data"]["id"], received.json["data"]["status"]) == (call_sid, status)
        assert_signed(received, customer.webhook_secret)


async def test_the_recording_of_a_masked_call_is_downloaded_by_its_link(line: Line) -> None:
    call_sid = (await start(line))["call_sid"]
    first, second = await connected(line)
    first.rtp.say(tone(440, 0.4))
    await appears(lambda: level(second.rtp.heard()[-800:]) > 2000, "A's voice at B")
    await second.hang_up()
    path = f"{CALLS}/{call_sid}"
    found = await line.api.until(path, lambda call: call["recording_url"])
    assert found["status"] == "completed"
    link = (await line.api.get(f"{path}/recording")).expect(200)
    assert_fits(link.body, {"data": {"url": str, "call_sid": call_sid}})
    assert link.data["url"].startswith("/")
    nobody = line.api.with_key(None)
    file = (await nobody.get(link.data["url"])).expect(200)
    assert file.content[:4] == b"RIFF" and file.content[8:12] == b"WAVE"
    (await nobody.get(link.data["url"].partition("?")[0])).expect(401)
    (await nobody.get(link.data["url"] + "0")).expect(403)


async def test_a_call_that_was_not_connected_has_no_recording(line: Line) -> None:
    line.phone.manner = Manner(status=486)
    call_sid = (await start(line))["call_sid"]
    await ended(line, call_sid)
    assert_masking_error(await line.api.get(f"{CALLS}/{call_sid}/recording"), 404, "not_found")


@pytest.mark.parametrize(
    ("first", "second", "status", "cause"),
    [
        (486, 200, "no-answer", "USER_BUSY"),
        (480, 200, "no-answer", "NO_ANSWER"),
        (200, 486, "no-answer", "USER_BUSY"),
        (200, 603, "no-answer", "CALL_REJECTED"),
        (404, 200, "failed", "UNALLOCATED_NUMBER"),
        (200, 404, "failed", "UNALLOCATED_NUMBER"),
    ],
)
async def test_a_masked_call_that_is_not_connected_has_its_reason(
    line: Line, first: int, second: int, status: str, cause: str
) -> None:
    line.phone.manners = {A: Manner(status=first), B: Manner(status=second)}
    found = await ended(line, (await start(line))["call_sid"])
    assert (found["status"], found["hangup_cause"]) == (status, cause)
    assert found["answered_at"] is None
    assert [call.number for call in line.phone.calls] == ([A] if first != 200 else [A, B])


@pytest.mark.long("the shortest limit is ten seconds")
async def test_a_call_ends_when_its_parties_have_talked_for_the_longest_time(line: Line) -> None:
    call_sid = (await start(line, max_duration_sec=10))["call_sid"]
    first, second = await connected(line)
    await asyncio.gather(first.until_ended(), second.until_ended())
    assert 9 < second.ended_at_s - second.answered_at_s < 12
    found = await ended(line, call_sid)
    assert (found["status"], found["hangup_cause"]) == ("completed", "ALLOTTED_TIMEOUT")


async def test_wrong_masked_calls_are_refused(line: Line, new_customer: NewCustomer) -> None:
    same = {"party_a": PARTIES["party_a"], "party_b": PARTIES["party_a"]}
    assert_masking_error(await line.api.post(CALLS, same), 400, "invalid_numbers")
    wrong = {"party_a": "seven", "party_b": PARTIES["party_b"]}
    assert_masking_error(await line.api.post(CALLS, wrong), 400, "invalid_numbers", "party_a")
    error = assert_masking_error(await line.api.post(CALLS, {}), 400, "validation", "party_a", "party_b")
    assert error["message"]
    for seconds in (9, 7201, "ten"):
        reply = await line.api.post(CALLS, {**PARTIES, "max_duration_sec": seconds})
        assert_masking_error(reply, 400, "validation", "max_duration_sec")
    for key in (None, "vp_unknown"):
        assert_masking_error(await line.api.with_key(key).post(CALLS, PARTIES), 401, "unauthorized")
    poor = new_customer(0)
    poor.lease()
    sandbox = {"party_a": "9800000001", "party_b": "9800000002"}
    reply = await line.api.with_key(poor.key).post(CALLS, sandbox)
    assert_masking_error(reply, 402, "insufficient_balance")
    assert line.phone.calls == []


async def test_unknown_masked_calls_are_not_found(line: Line, new_customer: NewCustomer) -> None:
    line.phone.manner = Manner(status=486)
    call_sid = (await start(line))["call_sid"]
    await ended(line, call_sid)
    other = line.api.with_key(new_customer().key)
    for api, sid in ((line.api, UNKNOWN), (other, call_sid)):
        for path in (f"{CALLS}/{sid}", f"{CALLS}/{sid}/recording"):
            assert_masking_error(await api.get(path), 404, "not_found")
    for path in (f"{CALLS}/{call_sid}", f"{CALLS}/{call_sid}/recording"):
        assert_masking_error(await line.api.with_key(None).get(path), 401, "unauthorized")


async def test_logs_statistics_and_billing(line: Line) -> None:
    line.phone.manners[B] = Manner(hangs_up_after_s=0.3)
    answered = await ended(line, (await start(line))["call_sid"])
    line.phone.manners[B] = Manner(status=404)
    failed = await ended(line, (await start(line))["call_sid"])

    logs = (await line.api.get("/v1/masking/call-logs")).expect(200)
    assert_fits(logs.body, {"data": [MASKED_CALL], "meta": {"total": 2, "page": 1, "per_page": 20}})
    assert [log["id"] for log in logs.data] == [failed["id"], answered["id"]]
    # Its recording may be complete by now.
    assert {**logs.data[1], "recording_url": None} == {**answered, "recording_url": None}
    for query, wanted in (
        ({"status": "completed"}, [answered["id"]]),
        ({"party": PARTIES["party_a"], "per_page": "1"}, [failed["id"]]),
        ({"end_date": "2026-01-01"}, []),
    ):
        found = (await line.api.get("/v1/masking/call-logs", **query)).expect(200).data
        assert [log["id"] for log in found] == wanted, query
    reply = await line.api.get("/v1/masking/call-logs", status="lost")
    assert_masking_error(reply, 400, "validation", "status")

    stats = (await line.api.get("/v1/masking/stats")).expect(200)
    assert_fits(stats.body, {"data": MASKING_STATS})
    counts = [stats.data[name] for name in ("total_calls", "answered_calls", "failed_calls")]
    assert counts == [2, 1, 1]
    assert stats.data["total_minutes"] == answered["bill_duration_sec"] / 60
    assert stats.data["total_cost"] == pytest.approx(answered["price"] + failed["price"])
    session = {**PARTIES, "expires_in_sec": 600}
    enrolled = {"number": line.number, "force": True}
    (await line.api.post("/v1/masking/numbers", enrolled)).expect(201)
    (await line.api.post("/v1/masking/sessions", session)).expect(201)
    counted = (await line.api.get("/v1/masking/stats")).expect(200).data
    names = ("total_sessions", "active_sessions", "total_mappings")
    assert [counted[name] for name in names] == [1, 1, 2]

    billing = (await line.api.get("/v1/masking/billing")).expect(200)
    wallet = {"wallet_balance": number, "currency": "INR", "updated_at": moment}
    assert_fits(billing.body, {"data": wallet})
    assert billing.data["wallet_balance"] == pytest.approx(1000 - stats.data["total_cost"])


async def test_both_ends_of_the_period_are_included(line: Line) -> None:
    line.phone.manner = Manner(status=486)
    at = (await ended(line, (await start(line))["call_sid"]))["started_at"]
    for query in ({"end_date": at}, {"start_date": at}, {"start_date": at, "end_date": at}):
        stats = (await line.api.get("/v1/masking/stats", **query)).expect(200).data
        assert stats["total_calls"] == 1, query
        logs = (await line.api.get("/v1/masking/call-logs", **query)).expect(200).data
        assert len(logs) == 1, query


async def test_wrong_periods_are_refused(api: Api) -> None:
    for name in ("start_date", "end_date"):
        reply = await api.get("/v1/masking/stats", **{name: "yesterday"})
        assert_masking_error(reply, 400, "validation", name)
    for path in ("call-logs", "stats", "billing"):
        assert_masking_error(await api.with_key(None).get(f"/v1/masking/{path}"), 401, "unauthorized")


async def test_a_caller_of_the_masked_number_reaches_the_other_party(line: Line) -> None:
    enrolled = {"number": line.number, "force": True}
    (await line.api.post("/v1/masking/numbers", enrolled)).expect(201)
    (await line.api.post("/v1/masking/sessions", PARTIES)).expect(201)
    for caller, other in ((A, B), (B, A)):
        call = line.phone.dial(line.number, caller)
        rung = await (await line.phone.rings(other)).until_answered()
        assert_hidden(rung, caller, line.number)
        await call.until_answered()
        await call.hang_up()
        await rung.until_ended()
    listed = (await line.api.get("/v1/masking/call-logs", direction="inbound")).expect(200).data
    assert [(log["caller_number"], log["masked_number"]) for log in listed] == [
        *((B, line.number), (A, line.number)),
    ]


async def test_nobody_rings_when_the_other_party_cannot_be_reached(
    line: Line, new_customer: NewCustomer
) -> None:
    shop = new_customer()
    shop.lease()
    api = line.api.with_key(shop.key)
    for first, second, field in (
        ("9800000001", PARTIES["party_b"], "party_b"),
        (PARTIES["party_a"], "9800000001", "party_a"),
    ):
        reply = await api.post(CALLS, {"party_a": first, "party_b": second})
        error = assert_masking_error(reply, 400, "validation", field)
        assert error["details"]["errors"][0]["reason"] == "no_route"
    assert (await api.get("/v1/masking/call-logs")).expect(200).data == []
    assert (await api.get("/v1/masking/billing")).expect(200).data["wallet_balance"] == 1000


async def test_the_way_to_enrol_a_number_is_named_by_its_path(line: Line) -> None:
    reply = await line.api.post("/v1/masking/sessions", PARTIES)
    assert reply.status in (400, 404, 409), reply.content
    assert "/v1/masking/numbers" in reply.body["error"]["message"]
