"""Calls from the sandbox, which the specification has no endpoint of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from callcontrol.models import Binding
from tests.contract.cases import foreign, ok, refused, row
from tests.contract.givens import ECHO, ELSEWHERE, add_number, caller_id, used_up_second
from tests.contract.stage import Answer, Stage

_TO_OWN = {"to": caller_id(), "from": ECHO}


async def _answering_number(stage: Stage) -> str:
    """A number whose calls go to a voice agent."""
    number_id, number = await add_number(stage, "own")
    binding = Binding(target="media_stream", stream_url=stage.agent.url)
    await stage.server.storage.numbers.bind(stage.own.account_sid, number_id, binding, force=False)
    return number


async def _forwarded_number(stage: Stage) -> str:
    """A number whose calls go to another number of the sandbox, as in the README."""
    number_id, number = await add_number(stage, "own")
    binding = Binding(target="forward", forward_to="+919800000009")
    await stage.server.storage.numbers.bind(stage.own.account_sid, number_id, binding, force=False)
    return number


async def _is_refused_for_want_of_a_target(stage: Stage, answer: Answer) -> None:
    call = await stage.call_when(answer.data["call_sid"], "no-answer")
    assert (call["direction"], call["from"], call["to"]) == ("inbound", ECHO, answer.data["to"])
    assert call["sip_call_id"] == answer.data["sip_call_id"]


async def _is_answered(stage: Stage, answer: Answer) -> None:
    call = await stage.call_when(answer.data["call_sid"], "completed")
    assert (call["from"], call["hangup_source"]) == (answer.data["from"], "caller")


@asynccontextmanager
async def _unreachable_from_the_sandbox(stage: Stage) -> AsyncIterator[None]:
    """The sandbox carrier does not reach the server."""
    sandbox = stage.server.sandbox
    assert sandbox is not None
    target, sandbox.target = sandbox.target, None
    try:
        yield
    finally:
        sandbox.target = target


CASES = (
    *row(
        "POST /v1/sandbox/inbound",
        ok(201, body=_TO_OWN, then=_is_refused_for_want_of_a_target),
        ok(
            201,
            name="answered",
            body={
                "to": _answering_number,
                "behaviour": "tone",
                "send_digits": "1w2",
                "hangup_after_ringing_seconds": 30,
                "hangup_after_seconds": 1,
            },
            then=_is_answered,
        ),
        ok(
            201,
            name="forwarded",
            body={"to": _forwarded_number, "from": "+919800000012", "hangup_after_seconds": 10},
            then=_is_answered,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            body={
                **{"to": "12", "from": "", "behaviour": "dance", "send_digits": "x", "colour": "red"},
                **{"hangup_after_ringing_seconds": -1, "hangup_after_seconds": 0},
            },
            fields=(
                *("to", "from", "behaviour", "send_digits", "colour"),
                *("hangup_after_ringing_seconds", "hangup_after_seconds"),
            ),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="no party of the sandbox",
            body={"to": caller_id(), "from": ELSEWHERE},
            fields=("from",),
        ),
        refused(403, "NUMBER_NOT_OWNED", body={"to": ELSEWHERE}),
        foreign(403, "NUMBER_NOT_OWNED", body=_TO_OWN),
        refused(404, "NOT_FOUND", body=_TO_OWN, during=_unreachable_from_the_sandbox),
        refused(
            404,
            "NOT_FOUND",
            name="whoever has the number",
            body={"to": ELSEWHERE},
            during=_unreachable_from_the_sandbox,
        ),
        refused(429, "RATE_LIMITED", by="slow", body={"to": used_up_second}),
    ),
)
