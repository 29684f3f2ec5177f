"""Recordings: links to them, the files, and their deletion; all of it beyond the specification's rows."""

from __future__ import annotations

from tests.contract.cases import Case, foreign, ok, refused, row
from tests.contract.givens import NOWHERE, ended_call, recorded_call, recording_call
from tests.contract.stage import Answer, Stage

_OF_CALL = "/v1/calls/{callSid}/recording"


async def _is_a_recording(_: Stage, answer: Answer) -> None:
    assert answer.headers["Content-Type"] == "audio/wav"
    assert answer.raw[:4] == b"RIFF" and len(answer.raw) > 8000


async def _opens(stage: Stage, answer: Answer) -> None:
    """The link opens the recording of this call, without a key, for an hour."""
    url = answer.data["url"]
    assert url.startswith(f"/recordings/{answer.data['call_sid']}.wav?expires=")
    opened = await stage.ask("GET", url, key="")
    assert opened.status == 200
    await _is_a_recording(stage, opened)


async def _is_gone(stage: Stage, answer: Answer) -> None:
    assert answer.raw == b""


async def _link_of_another_call(stage: Stage) -> str:
    """The query of a link that opens another call's recording."""
    call_sid = await recorded_call(stage)
    link = await stage.data("GET", f"/v1/calls/{call_sid}/recording")
    return str(link["url"].partition("signature=")[2])


CASES: tuple[Case, ...] = (
    *row(
        "GET /recordings/{callSid}.wav",
        ok(path={"callSid": recorded_call}, then=_is_a_recording),
        foreign(403, "FORBIDDEN", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": ended_call}),
        refused(
            403,
            "FORBIDDEN",
            name="a link that was never made",
            path={"callSid": recorded_call},
            query={"expires": "4102444800", "signature": "0" * 64},
        ),
        refused(
            403,
            "FORBIDDEN",
            name="a link to another recording",
            path={"callSid": ended_call},
            query={"expires": "4102444800", "signature": _link_of_another_call},
        ),
        refused(
            403,
            "FORBIDDEN",
            name="a link to a call that is not there",
            path={"callSid": NOWHERE},
            query={"expires": "4102444800", "signature": "0" * 64},
        ),
        refused(
            403,
            "FORBIDDEN",
            name="a link that is over",
            path={"callSid": recorded_call},
            query={"expires": "1700000000", "signature": "0" * 64},
        ),
    ),
    *row(
        f"GET {_OF_CALL}",
        ok(path={"callSid": recorded_call}, then=_opens),
        foreign(403, "FORBIDDEN", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", name="no call", path={"callSid": NOWHERE}),
    ),
    *row(
        f"DELETE {_OF_CALL}",
        ok(204, path={"callSid": recorded_call}, then=_is_gone),
        foreign(403, "FORBIDDEN", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", name="no call", path={"callSid": NOWHERE}),
        refused(409, "CONFLICT", path={"callSid": recording_call}),
    ),
)
