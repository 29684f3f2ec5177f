"""Masked calls that are ended over the API."""

from __future__ import annotations

from tests.contract.cases import foreign, ok, refused, row
from tests.contract.givens import ECHO, NOWHERE, RINGS, caller_id
from tests.contract.stage import Answer, Stage

_CALLS = "/v1/masking/calls"


async def _ringing(stage: Stage) -> str:
    """A masked call whose first party lets it ring."""
    await caller_id()(stage)
    started = await stage.data("POST", _CALLS, body={"party_a": RINGS[3:], "party_b": ECHO[3:]})
    return str(started["call_sid"])


async def _ended(stage: Stage) -> str:
    call_sid = await _ringing(stage)
    await stage.ask("DELETE", f"{_CALLS}/{call_sid}")
    await stage.call_when(call_sid, "canceled")
    return call_sid


async def _ends(stage: Stage, answer: Answer) -> None:
    call = await stage.call_when(answer.data["id"], "canceled")
    assert call["hangup_source"] == "api"


CASES = (
    *row(
        f"DELETE {_CALLS}/{{call_sid}}",
        ok(path={"call_sid": _ringing}, then=_ends),
        foreign(404, "not_found", path={"call_sid": _ringing}),
        refused(404, "not_found", path={"call_sid": NOWHERE}),
        refused(409, "call_ended", path={"call_sid": _ended}),
    ),
)
