"""The voice OTP endpoints before the domain: what is taken, what is refused, and what is never answered."""

from __future__ import annotations

from datetime import date

import pytest

from api.schemas.otp import SendOtp, VerifyOtp
from callcontrol.errors import InsufficientBalance, RateLimited
from callcontrol.models import CallStatus
from callcontrol.otp.otp import Period
from tests.unit.api.client import Client
from tests.unit.api.fakes import NOWHERE, OTP_ID, READER_KEY, Fakes

TO = "+919876543210"
SEND = "/v1/voice-otp/send"


async def test_a_password_is_sent_and_never_answered(client: Client, fakes: Fakes) -> None:
    body = {
        "to": TO,
        "otp": "271828",
        "language": "hi-IN",
        "repeat": 3,
        "ttl_sec": 60,
        "from": "+918047000001",
    }
    answer = await client.post(SEND, {**body, "template": "Acme: {otp}", "reference": "login-7"})
    assert answer.status == 201
    assert (answer.data["id"], answer.data["to"], answer.data["status"]) == (
        OTP_ID,
        "******3210",
        "initiated",
    )
    assert b"271828" not in answer.body and TO.encode() not in answer.body
    [sent] = fakes.otp.sent
    assert (sent.code, sent.language, sent.repeat, sent.ttl_s) == ("271828", "hi-IN", 3, 60)
    assert (sent.from_, sent.template, sent.reference) == ("+918047000001", "Acme: {otp}", "login-7")


async def test_all_but_the_number_may_be_left_out(client: Client, fakes: Fakes) -> None:
    assert (await client.post(SEND, {"to": TO})).status == 201
    [sent] = fakes.otp.sent
    assert (sent.code, sent.length, sent.language, sent.repeat, sent.ttl_s) == (None, 6, "en-IN", 2, 300)


async def test_every_wrong_field_is_named(client: Client, fakes: Fakes) -> None:
    answer = await client.post(
        SEND,
        {
            "otp": "12a456",
            "length": 9,
            "language": "?",
            "repeat": 6,
            "ttl_sec": 1,
            "template": "",
            "code": "1",
        },
    )
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    wrong = {"to", "otp", "length", "language", "repeat", "ttl_sec", "template", "code"}
    assert set(answer.fields) == wrong
    assert b"12a456" not in answer.body and not fakes.otp.sent


async def test_a_length_that_contradicts_the_password(client: Client) -> None:
    assert set((await client.post(SEND, {"to": TO, "otp": "271828", "length": 4})).fields) == {"length"}
    assert (await client.post(SEND, {"to": TO, "otp": "2718", "length": 4})).status == 201


@pytest.mark.parametrize(
    ("failure", "status"),
    [(InsufficientBalance("No money."), 402), (RateLimited("Too often.", retry_after_s=30), 429)],
)
async def test_refusals_of_the_domain(client: Client, fakes: Fakes, failure: Exception, status: int) -> None:
    fakes.otp.failure = failure  # type: ignore[assignment]
    answer = await client.post(SEND, {"to": TO})
    assert answer.status == status
    assert status != 429 or answer.headers["Retry-After"] == "30"


async def test_scopes(client: Client) -> None:
    assert (await client.post(SEND, {"to": TO}, key=READER_KEY)).status == 403
    assert (await client.get("/v1/voice-otp/calls", key=READER_KEY)).status == 403
    assert (await client.get("/v1/voice-otp/calls", key=None)).status == 401


async def test_one_and_none(client: Client) -> None:
    answer = await client.get(f"/v1/voice-otp/calls/{OTP_ID}")
    assert answer.status == 200 and answer.data["verified_at"] is not None
    assert (await client.get(f"/v1/voice-otp/calls/{NOWHERE}")).status == 404
    assert (await client.get("/v1/voice-otp/calls/7")).status == 404


async def test_a_list_and_its_filters(client: Client, fakes: Fakes) -> None:
    answer = await client.get(
        "/v1/voice-otp/calls?status=no-answer&to=9876543210&start_date=2026-01-01&end_date=2026-01-31&reference=r"
    )
    assert answer.status == 200 and answer.json()["meta"]["total"] == 1
    [found] = fakes.otp.filters
    assert (found.status, found.to, found.reference) == (CallStatus.NO_ANSWER, TO, "r")
    assert found.start is not None and found.end is not None and found.end.day == 1
    assert set((await client.get("/v1/voice-otp/calls?to=nobody")).fields) == {"to"}
    assert set((await client.get("/v1/voice-otp/calls?status=queued")).fields) == {"status"}


async def test_statistics(client: Client, fakes: Fakes) -> None:
    answer = await client.get("/v1/voice-otp/stats?start_date=2026-01-01&end_date=2026-01-31")
    assert fakes.otp.periods == [Period(date(2026, 1, 1), date(2026, 1, 31))]
    assert answer.data["period"] == {"start": "2026-01-01", "end": "2026-01-31"}
    assert (answer.data["total_calls"], answer.data["total_cost"], answer.data["currency"]) == (1, 0.6, "INR")
    assert set((await client.get("/v1/voice-otp/stats?start_date=1-1-2026")).fields) == {"start_date"}


async def test_a_guess(client: Client, fakes: Fakes) -> None:
    answer = await client.post(f"/v1/voice-otp/{OTP_ID}/verify", {"otp": "314159"})
    assert answer.data == {"verified": False, "attempts_left": 4, "reason": "wrong"}
    assert set((await client.post(f"/v1/voice-otp/{OTP_ID}/verify", {"otp": "x"})).fields) == {"otp"}
    assert (await client.post(f"/v1/voice-otp/{NOWHERE}/verify", {"otp": "314159"})).status == 404


def test_requests_hide_the_password() -> None:
    assert "271828" not in repr(SendOtp(to=TO, otp="271828")) + repr(VerifyOtp(otp="271828"))
