"""The voice OTP endpoints before the domain: what is taken, what is refused, and what is never answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date
from functools import partial
from typing import Any

import pytest

from api.schemas.otp import SendOtp, VerifyOtp
from callcontrol.bootstrap.aio.services import Services
from callcontrol.models import CallStatus
from callcontrol.otp import store as otps
from callcontrol.otp.otp import PER_DESTINATION, WINDOW, Period
from callcontrol.otp.otp import SendOtp as Wanted
from callcontrol.otp.product import PRODUCT, otp_details
from tests.support.api_facts import ACCOUNT, MOMENT, NOWHERE, NUMBER, READER_KEY, call
from tests.support.api_stage import ApiStage, asked
from tests.unit.api.client import Client

TO = "+919876543210"
SEND = "/v1/voice-otp/send"
OTP_ID = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
OTP_CALL_SID = "bbbbbbbb-aaaa-4aaa-8aaa-aaaaaaaaaaaa"


async def add_unheard(stage: ApiStage) -> None:
    """Add a password whose call nobody answered."""
    details = otp_details(OTP_ID, language="hi-IN", repeat=2, reference="r", expires_at=MOMENT)
    record = call(
        OTP_CALL_SID,
        to=TO,
        status=CallStatus.NO_ANSWER,
        ended_at=MOMENT,
        price_paise=60,
        product=PRODUCT,
        details=details,
    )
    await stage.add_call(record)
    otp = otps.NewOtp(OTP_ID, ACCOUNT, TO, created_at=MOMENT, expires_at=MOMENT, reference="r")
    await stage.write(partial(otps.insert, otp=otp, code_hash="00", call_sid=OTP_CALL_SID))


async def test_a_password_is_sent_and_never_answered(client: Client, services: Services) -> None:
    requests = asked(services.otp, "send")
    body = {
        "to": TO,
        "otp": "271828",
        "language": "hi-IN",
        "repeat": 3,
        "ttl_sec": 60,
        "from": NUMBER,
    }
    answer = await client.post(SEND, {**body, "template": "Acme: {otp}", "reference": "login-7"})
    assert answer.status == 201
    assert (answer.data["to"], answer.data["status"]) == ("******3210", "initiated")
    kept = await services.otp.get(ACCOUNT, answer.data["id"])
    assert (kept.record.from_, kept.record.to) == (NUMBER, TO)
    assert b"271828" not in answer.body and TO.encode() not in answer.body
    [(_, sent)] = requests
    assert (sent.code, sent.language, sent.repeat, sent.ttl_s) == ("271828", "hi-IN", 3, 60)
    assert (sent.from_, sent.template, sent.reference) == (NUMBER, "Acme: {otp}", "login-7")


async def test_all_but_the_number_may_be_left_out(client: Client, services: Services) -> None:
    requests = asked(services.otp, "send")
    assert (await client.post(SEND, {"to": TO})).status == 201
    [(_, sent)] = requests
    assert (sent.code, sent.length, sent.language, sent.repeat, sent.ttl_s) == (None, 6, "en-IN", 2, 300)


async def test_every_wrong_field_is_named(client: Client, services: Services) -> None:
    requests = asked(services.otp, "send")
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
    assert b"12a456" not in answer.body and not requests


@pytest.mark.parametrize(
    "body",
    [
        {"language": "fr", "repeat": 0, "template": "ab {x} cd"},
        {"language": "fr", "ttl_sec": 5},
        {"language": "fr", "template": "ab 12345 cd"},
        {"to": "+911800123456", "repeat": 0},
        {"language": "fr", "length": 4, "otp": "271828"},
    ],
)
async def test_wrong_fields_of_every_kind_are_named_at_once(client: Client, body: dict[str, Any]) -> None:
    answer = await client.post(SEND, {"to": TO, **body})
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert set(answer.fields) == set(body) - {"otp"}


async def test_a_language_that_is_none_is_refused_in_words(client: Client) -> None:
    answer = await client.post(SEND, {"to": TO, "language": "kn-X"})
    assert answer.fields == {"language": "must be a language such as en-IN or hi"}


async def test_a_length_that_contradicts_the_password(client: Client) -> None:
    assert set((await client.post(SEND, {"to": TO, "otp": "271828", "length": 4})).fields) == {"length"}
    assert (await client.post(SEND, {"to": TO, "otp": "2718", "length": 4})).status == 201


async def send_as_often_as_allowed(stage: ApiStage) -> None:
    for _ in range(PER_DESTINATION):
        await stage.services.otp.send(ACCOUNT, Wanted(to=TO))


@pytest.mark.parametrize(
    ("before", "status"), [(ApiStage.empty_wallet, 402), (send_as_often_as_allowed, 429)]
)
async def test_refusals_of_the_domain(
    client: Client, stage: ApiStage, before: Callable[[ApiStage], Awaitable[None]], status: int
) -> None:
    await before(stage)
    answer = await client.post(SEND, {"to": TO})
    assert answer.status == status
    window_s = WINDOW.total_seconds()
    assert status != 429 or window_s - 60 <= int(answer.headers["Retry-After"]) <= window_s


async def test_scopes(client: Client) -> None:
    assert (await client.post(SEND, {"to": TO}, key=READER_KEY)).status == 403
    assert (await client.get("/v1/voice-otp/calls", key=READER_KEY)).status == 403
    assert (await client.get("/v1/voice-otp/calls", key=None)).status == 401


async def test_one_and_none(client: Client, services: Services) -> None:
    sent = await services.otp.send(ACCOUNT, Wanted(to=TO, code="271828"))
    assert (await services.otp.verify(ACCOUNT, sent.state.otp_id, "271828")).verified
    answer = await client.get(f"/v1/voice-otp/calls/{sent.state.otp_id}")
    assert answer.status == 200 and answer.data["verified_at"] is not None
    assert (await client.get(f"/v1/voice-otp/calls/{NOWHERE}")).status == 404
    assert (await client.get("/v1/voice-otp/calls/7")).status == 404


async def test_a_list_and_its_filters(client: Client, stage: ApiStage) -> None:
    await add_unheard(stage)
    lists = asked(stage.services.otp, "list")
    answer = await client.get(
        "/v1/voice-otp/calls?status=no-answer&to=9876543210&start_date=2026-01-01&end_date=2026-01-31&reference=r"
    )
    assert answer.status == 200 and answer.json()["meta"]["total"] == 1
    assert [shown["id"] for shown in answer.data] == [OTP_ID]
    [(_, found, *_)] = lists
    assert (found.status, found.to, found.reference) == (CallStatus.NO_ANSWER, TO, "r")
    assert found.start is not None and found.end is not None and found.end.day == 1
    for nobody in ("nobody", "%2B91980000000"):
        assert set((await client.get(f"/v1/voice-otp/calls?to={nobody}")).fields) == {"to"}
    assert set((await client.get("/v1/voice-otp/calls?status=gone")).fields) == {"status"}
    queued = await client.get("/v1/voice-otp/calls?status=queued")
    assert (queued.status, queued.data) == (200, [])


async def test_statistics(client: Client, stage: ApiStage) -> None:
    await add_unheard(stage)
    periods = asked(stage.services.otp, "stats")
    answer = await client.get("/v1/voice-otp/stats?start_date=2026-01-01&end_date=2026-01-31")
    assert periods == [(ACCOUNT, Period(date(2026, 1, 1), date(2026, 1, 31)))]
    assert answer.data["period"] == {"start": "2026-01-01", "end": "2026-01-31"}
    assert (answer.data["total_calls"], answer.data["total_cost"], answer.data["currency"]) == (1, 0.6, "INR")
    for query, field in (("1-1-2026", "start_date"), ("9999-01-01", "end_date")):
        answer = await client.get(f"/v1/voice-otp/stats?start_date={query}")
        assert (answer.status, set(answer.fields)) == (400, {field})


async def test_a_guess(client: Client, services: Services) -> None:
    otp_id = (await services.otp.send(ACCOUNT, Wanted(to=TO, code="271828"))).state.otp_id
    answer = await client.post(f"/v1/voice-otp/{otp_id}/verify", {"otp": "314159"})
    assert answer.data == {"verified": False, "attempts_left": 4, "reason": "wrong"}
    assert set((await client.post(f"/v1/voice-otp/{otp_id}/verify", {"otp": "x"})).fields) == {"otp"}
    assert (await client.post(f"/v1/voice-otp/{NOWHERE}/verify", {"otp": "314159"})).status == 404


def test_requests_hide_the_password() -> None:
    assert "271828" not in repr(SendOtp(to=TO, otp="271828")) + repr(VerifyOtp(otp="271828"))
