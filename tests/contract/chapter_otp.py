"""The voice OTP chapter."""

from __future__ import annotations

from typing import Any

from tests.contract.cases import foreign, ok, refused, row, unseen
from tests.contract.givens import (
    BUSY,
    DIGITS,
    NOWHERE,
    RINGS,
    TONE,
    a_password,
    caller_id,
    has_no_route,
    no_platform_carrier,
    nothing,
    resting_platform_gateways,
    sent_password,
    unregistered_caller_id,
    used_key,
    used_up_destination,
)
from tests.contract.stage import Answer, Stage

_SEND = "/v1/voice-otp/send"
_CODE = "271828"
_BODY = {"to": TONE, "otp": _CODE, "repeat": 1, "from": caller_id(), "reference": "login-7"}


async def _is_spoken(stage: Stage, answer: Answer) -> None:
    """The call is answered; the number is masked and the password nowhere."""
    sent = answer.data
    assert (sent["to"], sent["status"], sent["reference"]) == ("******0007", "initiated", "login-7")
    assert _CODE.encode() not in answer.raw
    call = await stage.call_when(sent["call_sid"], "in-progress")
    assert call["answered_at"] is not None
    await stage.ask("DELETE", f"/v1/Accounts/{stage.own.account_sid}/Calls/{sent['call_sid']}")
    ended = await stage.call_when(sent["call_sid"], "completed")
    assert ended["price"] is not None


async def _was_busy(stage: Stage, answer: Answer) -> None:
    assert answer.data["id"] == stage.kept["password"] and answer.data["played_count"] == 0


async def _is_listed(stage: Stage, answer: Answer) -> None:
    assert stage.kept["password"] in [item["id"] for item in answer.data]
    assert answer.meta["total"] >= len(answer.data) and answer.meta["per_page"] == 20


async def _are_counted(stage: Stage, answer: Answer) -> None:
    listed = await stage.ask("GET", "/v1/voice-otp/calls")
    assert answer.data["total_calls"] == listed.meta["total"] > 0
    assert answer.data["currency"] == "INR" and answer.data["period"]["start"] <= answer.data["period"]["end"]


async def _counts_none(_: Stage, answer: Answer) -> None:
    assert answer.data["total_calls"] == 0 and answer.data["total_cost"] == 0


async def _is_verified(_: Stage, answer: Answer) -> None:
    assert answer.data["verified"] is True


async def _is_wrong(_: Stage, answer: Answer) -> None:
    assert (answer.data["verified"], answer.data["attempts_left"]) == (False, 4)


async def _carries_retry_after(_: Stage, answer: Answer) -> None:
    assert 1 <= int(answer.headers["Retry-After"]) <= 600


def _with(**changes: Any) -> dict[str, Any]:
    return {**_BODY, **{"from" if name == "from_" else name: value for name, value in changes.items()}}


CASES = (
    *row(
        f"POST {_SEND}",
        ok(201, body=_BODY, then=_is_spoken),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"otp": "12a4", "repeat": 6, "ttl_sec": 0, "length": 3, "colour": "red"},
            fields=("to", "otp", "repeat", "ttl_sec", "length", "colour"),
        ),
        refused(402, "INSUFFICIENT_BALANCE", by="poor", body=_with(from_=caller_id("poor"))),
        refused(402, "SPEND_LIMIT_EXCEEDED", by="thrifty", body=_with(from_=caller_id("thrifty"))),
        refused(403, "NUMBER_NOT_OWNED", body=_with(from_=unregistered_caller_id)),
        foreign(403, "NUMBER_NOT_OWNED", body=_BODY),
        refused(403, "FORBIDDEN", name="a country that may not be called", body=_with(to="+14155550100")),
        refused(
            409, "IDEMPOTENCY_CONFLICT", body=_BODY, headers={"Idempotency-Key": used_key(_SEND, a_password)}
        ),
        refused(
            429, "RATE_LIMITED", before=(used_up_destination,), body=_with(to=BUSY), then=_carries_retry_after
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="no carrier",
            body=_with(to=DIGITS),
            during=no_platform_carrier,
            fields=("to",),
            then=has_no_route,
        ),
        refused(503, "SERVICE_UNAVAILABLE", body=_with(to=DIGITS), during=resting_platform_gateways),
    ),
    *row(
        "GET /v1/voice-otp/calls/{id}",
        ok(path={"id": sent_password}, then=_was_busy),
        foreign(403, "FORBIDDEN", path={"id": sent_password}),
        refused(404, "NOT_FOUND", path={"id": NOWHERE}),
        refused(404, "NOT_FOUND", name="no UUID", path={"id": "42"}),
    ),
    *row(
        "GET /v1/voice-otp/calls",
        ok(before=(sent_password,), then=_is_listed),
        ok(
            name="of a number",
            before=(sent_password,),
            query={"to": RINGS.removeprefix("+")},
            then=_is_listed,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            query={"status": "gone", "to": "garbage", "page": "0", "colour": "red"},
            fields=("status", "to", "page"),
        ),
        unseen(before=(sent_password,), then=nothing),
    ),
    *row(
        "GET /v1/voice-otp/stats",
        ok(before=(sent_password,), then=_are_counted),
        refused(400, "VALIDATION_ERROR", query={"start_date": "31-01-2026"}, fields=("start_date",)),
        refused(
            400,
            "VALIDATION_ERROR",
            name="end before start",
            query={"start_date": "2026-02-01", "end_date": "2026-01-31"},
            fields=("end_date",),
        ),
        unseen(before=(sent_password,), then=_counts_none),
    ),
    *row(
        "POST /v1/voice-otp/{id}/verify",
        ok(path={"id": sent_password}, body={"otp": "000000"}, then=_is_wrong),
        ok(name="right", path={"id": sent_password}, body={"otp": "314159"}, then=_is_verified),
        refused(400, "VALIDATION_ERROR", path={"id": sent_password}, body={"otp": "x"}, fields=("otp",)),
        foreign(403, "FORBIDDEN", path={"id": sent_password}, body={"otp": "000000"}),
        refused(404, "NOT_FOUND", path={"id": NOWHERE}, body={"otp": "000000"}),
    ),
)
