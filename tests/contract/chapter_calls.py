"""The calls chapter."""

from __future__ import annotations

from typing import Any

from callcontrol.messaging.models import SANDBOX_NUMBER
from tests.contract.cases import Case, foreign, ok, refused, row, unseen
from tests.contract.givens import (
    BUSY,
    ECHO,
    ELSEWHERE,
    NOWHERE,
    TONE,
    account_sid,
    agent_url,
    answered_call,
    call_elsewhere,
    caller_id,
    carrier,
    ended_call,
    has_no_route,
    no_platform_carrier,
    resting_platform_gateways,
    ringing_call,
    unregistered_caller_id,
    used_key,
    used_up_second,
)
from tests.contract.stage import Answer, Stage

_MESSAGE = {
    "verb": "message",
    "to": "+919800100188",
    "from": SANDBOX_NUMBER,
    "text": "We have called you.",
}
_HANG_UP = [{"verb": "hangup"}]
_TO_ECHO = {"from": caller_id(), "to": ECHO, "verbs": _HANG_UP}
_AS_PEOPLE_WRITE = "91 98000-00001"
_WRITINGS = ("919800000003", "+91 98000 00003", "09800000003", "tel:+91-98000-00003")
_STREAMED = {"from": caller_id(), "to": TONE, "stream_url": agent_url, "sample_rate": 8000, "time_limit": 1}


async def _completes(stage: Stage, answer: Answer) -> None:
    """The call is dialled, answered by the sandbox, and ends by itself."""
    call = answer.data
    assert call["sid"] == call["call_sid"] and call["direction"] == "outbound"
    assert answer.meta["request_id"] == answer.headers["X-Request-Id"] and answer.meta["timestamp"]
    ended = await stage.call_when(call["call_sid"], "completed")
    assert ended["answered_at"] is not None and ended["price"] is not None
    assert ended["hangup_cause_code"] in (16, 802)


async def _messages(stage: Stage, answer: Answer) -> None:
    """The message is sent in the name of the account, and the call goes on."""
    await _completes(stage, answer)
    query = {"to": _MESSAGE["to"], "direction": "outbound"}
    listed = await stage.data("GET", "/api/v1/messages", query=query)
    assert [item["text"] for item in listed] == [_MESSAGE["text"]]


async def _streams(stage: Stage, answer: Answer) -> None:
    """The stream has its identifier from the beginning, and keeps it."""
    stream = answer.data["stream"]
    assert stream == {
        "stream_sid": stream["stream_sid"],
        "stream_url": stage.agent.url,
        "protocol": "exotel",
        "encoding": "l16",
        "sample_rate": 8000,
        "state": "pending",
    }
    await _completes(stage, answer)
    ended = await stage.call(answer.data["call_sid"])
    assert ended["stream"] == {**stream, "state": "stopped"}


async def _hangs_up(stage: Stage, answer: Answer) -> None:
    ended = await stage.call_when(answer.data["call_sid"], "completed", "canceled")
    assert ended["hangup_source"] == "api"


async def _is_listed(stage: Stage, answer: Answer) -> None:
    assert stage.kept["ended call"] in [call["call_sid"] for call in answer.data]
    assert answer.meta["total"] >= 1 and answer.meta["page"] == 1 and answer.meta["per_page"] == 20
    assert {call["status"] for call in answer.data} == {"busy"}


async def _created_at(stage: Stage) -> str:
    """When the call that is listed was created, as it is shown."""
    return str((await stage.call(await ended_call(stage)))["created_at"])


async def _is_to_the_echo(_: Stage, answer: Answer) -> None:
    assert answer.data["to"] == ECHO


async def _are_none(_: Stage, answer: Answer) -> None:
    assert (answer.data, answer.meta["total"]) == ([], 0)


async def _are_their_own(stage: Stage, answer: Answer) -> None:
    assert all(call["account_sid"] == stage.accounts["other"].account_sid for call in answer.data)


async def _is_busy(stage: Stage, answer: Answer) -> None:
    assert (answer.data["status"], answer.data["hangup_cause_code"]) == ("busy", 17)


async def _carries_retry_after(_: Stage, answer: Answer) -> None:
    assert 1 <= int(answer.headers["Retry-After"]) <= 60


async def _plain(stage: Stage) -> Any:
    return {"from": await caller_id()(stage), "to": BUSY, "verbs": _HANG_UP}


async def _plain_stream(stage: Stage) -> Any:
    return {"from": await caller_id()(stage), "to": BUSY, "stream_url": stage.agent.url}


def _with(given: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**given, **changes}


def _placed(path: str, given: dict[str, Any], plain: Any) -> tuple[Case, ...]:
    """Refusals common to both ways of placing a call."""
    return (
        refused(
            400,
            "VALIDATION_ERROR",
            body=_with(given, to="", timeout=4, colour="red"),
            fields=("to", "timeout", "colour"),
        ),
        refused(400, "VALIDATION_ERROR", name="no number", body=_with(given, to="12"), fields=("to",)),
        refused(402, "INSUFFICIENT_BALANCE", by="poor", body=_with(given, **{"from": caller_id("poor")})),
        refused(
            402, "SPEND_LIMIT_EXCEEDED", by="thrifty", body=_with(given, **{"from": caller_id("thrifty")})
        ),
        refused(403, "NUMBER_NOT_OWNED", body=_with(given, **{"from": unregistered_caller_id})),
        foreign(403, "NUMBER_NOT_OWNED", body=given),
        refused(
            403, "FORBIDDEN", name="a country that may not be called", body=_with(given, to="+14155550100")
        ),
        refused(409, "IDEMPOTENCY_CONFLICT", body=given, headers={"Idempotency-Key": used_key(path, plain)}),
        refused(
            429,
            "RATE_LIMITED",
            by="slow",
            body=_with(given, **{"from": used_up_second}),
            then=_carries_retry_after,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="no carrier",
            body=given,
            during=no_platform_carrier,
            fields=("to",),
            then=has_no_route,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="no carrier serves the number",
            body=_with(given, to=ELSEWHERE),
            fields=("to",),
            then=has_no_route,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="an unknown carrier",
            body=_with(given, carrier_sid=NOWHERE),
            fields=("carrier_sid",),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a carrier without a gateway",
            body=_with(given, carrier_sid=carrier()),
            fields=("carrier_sid",),
            then=has_no_route,
        ),
        refused(
            403,
            "FORBIDDEN",
            name="another account's carrier",
            body=_with(given, carrier_sid=carrier("other")),
        ),
        refused(
            503,
            "SERVICE_UNAVAILABLE",
            body=given,
            during=resting_platform_gateways,
            then=_carries_retry_after,
        ),
    )


CASES = (
    *row(
        "POST /v1/calls",
        ok(201, body=_TO_ECHO, then=_completes),
        ok(201, name="with a message", body=_with(_TO_ECHO, verbs=[_MESSAGE, *_HANG_UP]), then=_messages),
        refused(
            400,
            "VALIDATION_ERROR",
            name="with a message that is none",
            body=_with(_TO_ECHO, verbs=[{**_MESSAGE, "to": "12", "from": 5, "text": " ", "media": "x"}]),
            fields=("verbs[0].to", "verbs[0].from", "verbs[0].text", "verbs[0].media"),
        ),
        ok(201, name="streamed", body=_STREAMED, then=_streams),
        ok(201, name="as people write", body=_with(_TO_ECHO, to=_AS_PEOPLE_WRITE), then=_is_to_the_echo),
        *_placed("/v1/calls", _TO_ECHO, _plain),
    ),
    *row(
        "GET /v1/calls",
        ok(query={"status": "busy", "to": BUSY}, before=(ended_call,), then=_is_listed),
        *(
            ok(name=f"to {to}", query={"status": "busy", "to": to}, before=(ended_call,), then=_is_listed)
            for to in _WRITINGS
        ),
        ok(
            name="created at a time",
            before=(ended_call,),
            query={"status": "busy", "start_date": _created_at, "end_date": _created_at},
            then=_is_listed,
        ),
        ok(name="to an address", query={"to": "sip:nobody@pbx.example.com"}, then=_are_none),
        ok(name="from a withheld number", query={"from": "anonymous"}, then=_are_none),
        refused(
            400,
            "VALIDATION_ERROR",
            name="filters that are no numbers",
            query={"from": "garbage", "to": "98000"},
            fields=("from", "to"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            query={"page": "0", "per_page": "101", "status": "gone", "colour": "red", "start_date": "soon"},
            fields=("page", "per_page", "status", "start_date"),
        ),
        refused(400, "VALIDATION_ERROR", query={"start_date": "soon"}, fields=("start_date",)),
        unseen(before=(ended_call,), then=_are_their_own),
    ),
    *row(
        "GET /v1/Accounts/{sid}/Calls",
        ok(query={"status": "busy", "to": BUSY}, before=(ended_call,), then=_is_listed),
        refused(400, "VALIDATION_ERROR", query={"page": "0"}, fields=("page",)),
        foreign(403, "FORBIDDEN", path={"sid": account_sid("own")}),
    ),
    *row(
        "GET /v1/calls/{callSid}",
        ok(path={"callSid": ended_call}, then=_is_busy),
        foreign(403, "FORBIDDEN", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": NOWHERE}),
    ),
    *row(
        "POST /v1/Accounts/{sid}/Calls",
        ok(201, body=_STREAMED, then=_streams),
        refused(
            400,
            "VALIDATION_ERROR",
            name="no stream",
            body={"from": caller_id(), "to": ECHO},
            fields=("stream_url",),
        ),
        refused(403, "FORBIDDEN", path={"sid": account_sid("other")}, body=_STREAMED),
        foreign(403, "FORBIDDEN", path={"sid": account_sid("own")}, body=_STREAMED),
        *_placed("/v1/Accounts/{sid}/Calls", _STREAMED, _plain_stream),
    ),
    *row(
        "GET /v1/Accounts/{sid}/Calls/{callSid}",
        ok(path={"callSid": ended_call}, then=_is_busy),
        refused(403, "FORBIDDEN", path={"sid": account_sid("other"), "callSid": ended_call}),
        foreign(403, "FORBIDDEN", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": NOWHERE}),
        refused(404, "NOT_FOUND", name="no UUID", path={"callSid": "42"}),
    ),
    *row(
        "DELETE /v1/Accounts/{sid}/Calls/{callSid}",
        ok(path={"callSid": answered_call}, then=_hangs_up),
        ok(name="that rings", path={"callSid": ringing_call}, then=_hangs_up),
        refused(403, "FORBIDDEN", path={"sid": account_sid("other"), "callSid": ended_call}),
        foreign(403, "FORBIDDEN", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": NOWHERE}),
        refused(409, "CALL_ENDED", path={"callSid": ended_call}),
        refused(503, "NODE_UNREACHABLE", path={"callSid": call_elsewhere}),
    ),
    *row(
        "POST /v1/Accounts/{sid}/Calls/{callSid}",
        ok(202, path={"callSid": answered_call}, body={"mute_status": "mute"}),
        refused(400, "VALIDATION_ERROR", path={"callSid": ended_call}, body={"colour": "red"}),
        foreign(403, "FORBIDDEN", path={"callSid": ended_call}, body={"mute_status": "mute"}),
        refused(404, "NOT_FOUND", path={"callSid": NOWHERE}, body={"mute_status": "mute"}),
        refused(
            403,
            "NUMBER_NOT_OWNED",
            path={"callSid": answered_call},
            body={"transfer": {"to": ECHO, "caller_id": caller_id("other")}},
        ),
        refused(409, "CONFLICT", path={"callSid": ringing_call}, body={"dtmf": {"digits": "1"}}),
        refused(409, "CALL_ENDED", path={"callSid": ended_call}, body={"mute_status": "mute"}),
        refused(503, "NODE_UNREACHABLE", path={"callSid": call_elsewhere}, body={"mute_status": "mute"}),
    ),
    *row(
        "GET /v1/calls/{callSid}/transcript",
        ok(path={"callSid": ended_call}),
        foreign(403, "FORBIDDEN", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": NOWHERE}),
    ),
    *row(
        "DELETE /v1/calls/{callSid}/transcript",
        ok(204, path={"callSid": ended_call}),
        foreign(403, "FORBIDDEN", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": NOWHERE}),
        refused(409, "CONFLICT", path={"callSid": answered_call}),
    ),
    *row(
        "GET /v1/calls/{callSid}/trace",
        ok(path={"callSid": ended_call}),
        foreign(403, "FORBIDDEN", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": NOWHERE}),
    ),
)
