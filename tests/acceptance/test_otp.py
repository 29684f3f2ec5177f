"""Voice OTP: sending, showing, listing and counting (telephony specification, Voice OTP)."""

from __future__ import annotations

import pytest

from tests.acceptance.clients.http import Api
from tests.acceptance.clients.phone import Manner
from tests.acceptance.clients.rtp import assert_unbroken, level
from tests.acceptance.clients.webhooks import Receiver, assert_signed
from tests.acceptance.resources import META, OTP_CALL, OTP_STATS, PAGE
from tests.acceptance.shapes import assert_fits, assert_platform_error, e164, moment
from tests.acceptance.stage import ENDED, Customer, Line, NewCustomer, mobile

SEND = "/v1/voice-otp/send"
CALLS = "/v1/voice-otp/calls"
STATS = "/v1/voice-otp/stats"
UNKNOWN = "01a1ffc4-0000-7000-8000-000000000000"


@pytest.fixture
def customer(new_customer: NewCustomer) -> Customer:
    """A customer whose only number is the one that passwords are sent from."""
    return new_customer()


async def test_a_password_is_spoken_in_a_call(line: Line, receiver: Receiver, customer: Customer) -> None:
    body = {
        "to": mobile(),
        "otp": "4711",
        "repeat": 1,
        "reference": "login-7",
        "status_webhook_url": receiver.url("/otp"),
    }
    reply = (await line.api.post(SEND, body)).expect(201)
    assert_fits(reply.body, {"data": OTP_CALL, "meta": {"timestamp": moment}})
    sent = reply.data
    assert sent["status"] == "initiated" and sent["to"] == "******" + mobile()[-4:]
    assert_fits(sent["from"], e164, "from")
    assert sent["from"] == line.number
    rung = await (await line.phone.rings(mobile())).until_answered()
    assert rung.shown == line.number
    await rung.until_ended()
    assert level(rung.rtp.heard()) > 300
    assert 2 < rung.ended_at_s - rung.answered_at_s < 15

    path = f"{CALLS}/{sent['id']}"
    ended = await line.api.until(path, lambda call: call["status"] in ENDED)
    assert_fits(ended, {**OTP_CALL, "answered_at": moment, "ended_at": moment, "status": "completed"})
    assert (ended["played_count"], ended["reference"], ended["hangup_cause"]) == (
        *(1, "login-7"),
        "NORMAL_CLEARING",
    )
    await receiver.event("otp.completed", "/otp")
    assert receiver.events("/otp") == ["otp.initiated", "otp.answered", "otp.completed"]
    for received in receiver.requests:
        assert_signed(received, customer.webhook_secret)
        assert received.json["data"]["id"] == sent["id"]
        assert b"4711" not in received.body.replace(sent["id"].encode(), b"")
    for text in (reply.content, (await line.api.get(path)).content, (await line.api.get(CALLS)).content):
        assert b'"4711"' not in text

    verify = f"/v1/voice-otp/{sent['id']}/verify"
    wrong = (await line.api.post(verify, {"otp": "0000"})).expect(200).data
    assert (wrong["verified"], wrong["attempts_left"]) == (False, 4)
    assert (await line.api.post(verify, {"otp": "4711"})).expect(200).data["verified"] is True


async def test_a_password_call_sends_rtp_to_its_end(line: Line) -> None:
    (await line.api.post(SEND, {"to": mobile(), "length": 4, "repeat": 1})).expect(201)
    rung = await (await line.phone.rings(mobile())).until_answered()
    await rung.until_ended()
    assert_unbroken(rung.rtp, rung.answered_at_s, rung.ended_at_s, "the password")


async def test_passwords_that_nobody_heard_are_listed_and_counted(line: Line) -> None:
    line.phone.manners = {mobile(1): Manner(status=486), mobile(2): Manner(status=480)}
    for number in (1, 2):
        sent = (await line.api.post(SEND, {"to": mobile(number), "reference": f"r{number}"})).expect(201).data
        found = await line.api.until(f"{CALLS}/{sent['id']}", lambda call: call["status"] in ENDED)
        assert_fits(found, OTP_CALL)
        assert (found["status"], found["played_count"]) == (("busy", "no-answer")[number - 1], 0)
    listed = (await line.api.get(CALLS)).expect(200)
    assert_fits(listed.body, {"data": [OTP_CALL], "meta": {**PAGE, "timestamp": moment}})
    assert [call["reference"] for call in listed.data] == ["r2", "r1"]
    assert_fits(listed.meta, {"total": 2, "page": 1, "per_page": 20, "total_pages": 1})
    page = (await line.api.get(CALLS, page=2, per_page=1)).expect(200)
    assert [call["reference"] for call in page.data] == ["r1"]
    busy = (await line.api.get(CALLS, status="busy")).expect(200).data
    assert [call["reference"] for call in busy] == ["r1"]

    today = listed.data[0]["created_at"][:10]
    stats = (await line.api.get(STATS, start_date=listed.data[1]["created_at"][:10], end_date=today)).expect(
        200
    )
    assert_fits(stats.body, {"data": OTP_STATS, "meta": META})
    assert (stats.data["total_calls"], stats.data["no_answer_calls"], stats.data["answered_calls"]) == (
        2,
        1,
        0,
    )
    assert stats.data["period"]["end"] == today and stats.data["total_cost"] == 0
    assert (await line.api.get(STATS)).expect(200).data["total_calls"] == 2
    past = (await line.api.get(STATS, start_date="2026-01-01", end_date="2026-01-31")).expect(200).data
    assert past["total_calls"] == 0
    assert past["period"] == {"start": "2026-01-01", "end": "2026-01-31"}


async def test_wrong_requests_for_passwords_are_refused(line: Line, new_customer: NewCustomer) -> None:
    assert_platform_error(await line.api.post(SEND, {}), 400, "VALIDATION_ERROR", "to")
    wrong = {"to": "seven", "otp": "12", "repeat": 6, "language": "xx-", "colour": 1}
    reply = await line.api.post(SEND, wrong)
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "to", "otp", "repeat", "language", "colour")
    assert_platform_error(await line.api.with_key(None).post(SEND, {"to": mobile()}), 401, "UNAUTHORIZED")
    poor = new_customer(0)
    poor.lease()
    reply = await line.api.with_key(poor.key).post(SEND, {"to": "+919800000009"})
    assert_platform_error(reply, 402, "INSUFFICIENT_BALANCE")
    numberless = new_customer()
    reply = await line.api.with_key(numberless.key).post(SEND, {"to": "+919800000009"})
    assert_platform_error(reply, 403, "NUMBER_NOT_OWNED")
    assert line.phone.calls == []


async def test_unknown_passwords_and_wrong_days(api: Api) -> None:
    assert_platform_error(await api.get(f"{CALLS}/{UNKNOWN}"), 404, "NOT_FOUND")
    for query in ({"start_date": "31-01-2026"}, {"end_date": "yesterday"}):
        (name,) = query
        assert_platform_error(await api.get(STATS, **query), 400, "VALIDATION_ERROR", name)
    for path in (f"{CALLS}/{UNKNOWN}", CALLS, STATS):
        assert_platform_error(await api.with_key(None).get(path), 401, "UNAUTHORIZED")


async def test_a_number_gets_few_passwords_in_a_while(line: Line) -> None:
    line.phone.manner = Manner(status=486)
    for _ in range(5):
        (await line.api.post(SEND, {"to": mobile()})).expect(201)
    refused = await line.api.post(SEND, {"to": mobile()})
    assert_platform_error(refused, 429, "RATE_LIMITED")
    assert int(refused.headers["Retry-After"]) > 0
