"""The voice assistant: calls of agents, what was said on them, and what they come to."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.contract.cases import foreign, ok, refused, row, unseen
from tests.contract.givens import (
    BUSY,
    ECHO,
    NOWHERE,
    caller_id,
    has_no_route,
    no_platform_carrier,
    nothing,
    resting_platform_gateways,
    unregistered_caller_id,
    used_key,
    used_up_second,
    voice_agent,
)
from tests.contract.stage import Answer, Stage
from tests.support.waiting import PATIENCE_S, look_again

_CALLS = "/api/v1/calls"
_OUTBOUND = f"{_CALLS}/outbound"
_ONE = f"{_CALLS}/{{call_id}}"
_LIVE = "+919700000001"
_ENDED = {"completed", "failed", "no-answer", "busy", "voicemail"}
_CONTEXT = {"customer_name": "Asha"}


async def live_number(stage: Stage) -> str:
    """A number that a carrier of the platform serves and that is no test number."""
    if "live carrier" not in stage.kept:
        assert stage.server.sandbox is not None
        made, _ = await stage.server.storage.trunks.add_platform_carrier(
            "Live", [("udp", *stage.server.sandbox.address)], outbound=True, prefixes=(_LIVE[:-3],)
        )
        stage.kept["live carrier"] = made.carrier_sid
    return _LIVE


def _agent_of(by: str) -> Any:
    async def given(stage: Stage) -> str:
        name = f"agent of {by}"
        if name not in stage.kept:
            body = {"name": "Front desk", "stream_url": stage.agent.url}
            stage.kept[name] = (await stage.data("POST", "/api/v1/agents", by=by, body=body))["id"]
        return str(stage.kept[name])

    return given


def _body(by: str = "own", to: Any = ECHO, **more: Any) -> dict[str, Any]:
    return {"phone_number": to, "agent_id": _agent_of(by), "from": caller_id(by), **more}


async def _placed(stage: Stage, to: str, by: str = "own") -> str:
    body = {
        "phone_number": to,
        "agent_id": await _agent_of(by)(stage),
        "from": await caller_id(by)(stage),
        "context": _CONTEXT,
    }
    return str((await stage.data("POST", _OUTBOUND, by=by, body=body))["id"])


async def _when(stage: Stage, call_id: str, *statuses: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        while (call := await stage.data("GET", f"{_CALLS}/{call_id}"))["status"] not in statuses:
            assert call["status"] not in _ENDED, call
            await look_again()
    assert isinstance(call, dict)
    return call


async def answered(stage: Stage) -> str:
    """The id of a call that is up."""
    call_id = await _placed(stage, ECHO)
    await _when(stage, call_id, "in-progress")
    return call_id


async def completed(stage: Stage) -> str:
    """The id of a call that was answered and has ended; one for all cases."""
    if "completed call" not in stage.kept:
        call_id = await answered(stage)
        await stage.data("DELETE", f"{_CALLS}/{call_id}")
        await _when(stage, call_id, "completed")
        stage.kept["completed call"] = call_id
    return str(stage.kept["completed call"])


async def busy(stage: Stage) -> str:
    """The id of a call that found somebody busy; one for all cases."""
    if "busy call" not in stage.kept:
        call_id = await _placed(stage, BUSY)
        await _when(stage, call_id, "busy")
        stage.kept["busy call"] = call_id
    return str(stage.kept["busy call"])


async def recorded(stage: Stage) -> str:
    """The id of a call whose recording can be had."""
    body = {
        "phone_number": ECHO,
        "agent_id": await _agent_of("own")(stage),
        "from": await caller_id()(stage),
        "record": True,
        "time_limit": 1,
    }
    return await stage.recorded(str((await stage.data("POST", _OUTBOUND, body=body))["id"]))


async def _opens_a_file(stage: Stage, answer: Answer) -> None:
    async with stage.http.get(stage.server.url + answer.data["url"]) as response:
        assert (response.status, response.content_type) == (200, "audio/wav")


async def _is_forgotten(stage: Stage, answer: Answer) -> None:
    found = await stage.data("GET", f"{_CALLS}/{stage.kept['completed call']}/transcript")
    assert found["segments"] == []


async def _is_answered_for_nothing(stage: Stage, answer: Answer) -> None:
    """The sandbox answers, the agent is there, and nothing is charged."""
    assert (answer.data["sandbox"], answer.data["context"]) == (True, _CONTEXT)
    assert answer.data["status"] in ("queued", "ringing", "in-progress")
    call_id = answer.data["id"]
    await _when(stage, call_id, "in-progress")
    await stage.data("DELETE", f"{_CALLS}/{call_id}")
    ended = await _when(stage, call_id, "completed")
    assert ended["cost"] == 0 and ended["started_at"] and ended["ended_at"]


async def _has_retry_after(_: Stage, answer: Answer) -> None:
    assert int(answer.headers["Retry-After"]) >= 1


async def _was_busy(_: Stage, answer: Answer) -> None:
    assert (answer.data["status"], answer.data["transcript"]) == ("busy", [])
    assert answer.data["phone_number"] == BUSY


async def _has_segments(_: Stage, answer: Answer) -> None:
    assert answer.data["language"] == "en-IN" and isinstance(answer.data["segments"], list)


async def _is_listed(stage: Stage, answer: Answer) -> None:
    assert stage.kept["busy call"] in [item["id"] for item in answer.data]
    assert {item["status"] for item in answer.data} == {"busy"} and answer.meta["total"] >= 1


async def _is_counted(_: Stage, answer: Answer) -> None:
    assert answer.data["busy_calls"] >= 1
    assert sum(day["total_calls"] for day in answer.data["by_day"]) == answer.data["total_calls"]
    assert len(answer.data["by_day"]) == 30


async def _counts_none(_: Stage, answer: Answer) -> None:
    assert (answer.data["total_calls"], answer.data["success_rate"]) == (0, 0.0)


CASES = (
    *row(
        f"POST {_OUTBOUND}",
        ok(201, body=_body(context=_CONTEXT), then=_is_answered_for_nothing),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"phone_number": "nobody", "context": {"a": 1}, "timeout": 0, "colour": "red"},
            fields=("phone_number", "agent_id", "context.a", "timeout", "colour"),
        ),
        refused(402, "INSUFFICIENT_BALANCE", by="poor", body=_body("poor", live_number)),
        refused(402, "SPEND_LIMIT_EXCEEDED", by="thrifty", body=_body("thrifty", live_number)),
        refused(403, "NUMBER_NOT_OWNED", body={**_body(), "from": unregistered_caller_id}),
        refused(
            403,
            "NUMBER_NOT_OWNED",
            name="no number to call from",
            by="numberless",
            body={"phone_number": ECHO, "agent_id": _agent_of("numberless")},
        ),
        refused(403, "FORBIDDEN", name="a country that may not be called", body=_body(to="+14155550100")),
        refused(404, "NOT_FOUND", body={**_body(), "agent_id": NOWHERE}),
        refused(
            409,
            "IDEMPOTENCY_CONFLICT",
            body=_body(to=BUSY, context={"another": "body"}),
            headers={"Idempotency-Key": used_key(_OUTBOUND, lambda stage: _busy_body(stage))},
        ),
        refused(
            429,
            "RATE_LIMITED",
            by="slow",
            body={**_body("slow"), "from": used_up_second},
            then=_has_retry_after,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="no carrier",
            body=_body(to=live_number),
            during=no_platform_carrier,
            fields=("phone_number",),
            then=has_no_route,
        ),
        refused(503, "SERVICE_UNAVAILABLE", body=_body(to=live_number), during=resting_platform_gateways),
        foreign(403, "FORBIDDEN", body={**_body("other"), "agent_id": voice_agent}),
    ),
    *row(
        f"GET {_CALLS}",
        ok(before=(busy,), query={"status": "busy", "environment": "sandbox"}, then=_is_listed),
        refused(400, "VALIDATION_ERROR", query={"status": "canceled"}, fields=("status",)),
        unseen(by="buyer", before=(busy,), then=nothing),
    ),
    *row(
        f"GET {_ONE}",
        ok(path={"call_id": busy}, then=_was_busy),
        foreign(403, "FORBIDDEN", path={"call_id": busy}),
        refused(404, "NOT_FOUND", path={"call_id": NOWHERE}),
    ),
    *row(
        f"DELETE {_ONE}",
        ok(path={"call_id": answered}),
        foreign(403, "FORBIDDEN", path={"call_id": busy}),
        refused(404, "NOT_FOUND", path={"call_id": NOWHERE}),
        refused(409, "CALL_ENDED", path={"call_id": busy}),
    ),
    *row(
        f"GET {_ONE}/transcript",
        ok(path={"call_id": completed}, then=_has_segments),
        refused(404, "NOT_FOUND", name="it is up", path={"call_id": answered}),
        refused(404, "NOT_FOUND", name="it was not answered", path={"call_id": busy}),
        foreign(403, "FORBIDDEN", path={"call_id": completed}),
    ),
    *row(
        f"DELETE {_ONE}/transcript",
        ok(204, path={"call_id": completed}, then=_is_forgotten),
        refused(404, "NOT_FOUND", path={"call_id": NOWHERE}),
        refused(409, "CONFLICT", path={"call_id": answered}),
        foreign(403, "FORBIDDEN", path={"call_id": completed}),
    ),
    *row(
        f"GET {_ONE}/recording",
        ok(path={"call_id": recorded}, then=_opens_a_file),
        refused(404, "NOT_FOUND", name="it was not recorded", path={"call_id": busy}),
        foreign(403, "FORBIDDEN", path={"call_id": busy}),
    ),
    *row(
        "GET /api/v1/analytics",
        ok(before=(busy,), query={"environment": "sandbox"}, then=_is_counted),
        refused(
            400,
            "VALIDATION_ERROR",
            query={"start_date": "2026-02-01", "end_date": "2026-01-01"},
            fields=("end_date",),
        ),
        unseen(by="buyer", before=(busy,), query={"environment": "sandbox"}, then=_counts_none),
    ),
)


async def _busy_body(stage: Stage) -> dict[str, Any]:
    agent_id = await _agent_of("own")(stage)
    return {"phone_number": BUSY, "agent_id": agent_id, "from": await caller_id()(stage)}
