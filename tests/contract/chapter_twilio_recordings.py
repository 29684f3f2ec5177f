"""Recordings as Twilio's clients ask for them; beyond the specification's rows."""

from __future__ import annotations

from tests.contract.cases import Case, foreign, ok, refused, row, unseen
from tests.contract.givens import NOWHERE, account_sid, ended_call, recorded_call, recording_call
from tests.contract.stage import Answer, Stage

_ALL = "/2010-04-01/Accounts/{sid}/Recordings.json"
_OF_CALL = "/2010-04-01/Accounts/{sid}/Calls/{callSid}/Recordings.json"
_ONE = "/2010-04-01/Accounts/{sid}/Recordings/{recordingSid}.json"
_FILE = "/2010-04-01/Accounts/{sid}/Recordings/{recordingSid}.wav"


async def _two_recordings(stage: Stage) -> None:
    await recorded_call(stage)
    await recorded_call(stage)


async def _leads_to_the_next(stage: Stage, answer: Answer) -> None:
    page = answer.body
    assert (page["page"], page["start"], page["end"], len(page["recordings"])) == (0, 0, 0, 1)
    after = (await stage.ask("GET", page["next_page_uri"])).body
    assert after["recordings"][0]["sid"] != page["recordings"][0]["sid"]
    back = (await stage.ask("GET", after["previous_page_uri"])).body
    assert back["recordings"] == page["recordings"]
    by_number = (await stage.ask("GET", page["uri"].replace("Page=0", "Page=1"))).body
    assert by_number["recordings"] == after["recordings"]


async def _is_empty(_: Stage, answer: Answer) -> None:
    assert answer.body["recordings"] == [] and answer.body["next_page_uri"] is None


async def _has_one(stage: Stage, answer: Answer) -> None:
    (recording,) = answer.body["recordings"]
    assert recording["sid"] == recording["call_sid"] and recording["status"] == "completed"
    assert answer.body["next_page_uri"] is None
    media = await stage.ask("GET", recording["media_url"])
    assert media.raw[:4] == b"RIFF"
    again = await stage.ask("GET", answer.body["uri"].replace("Page=0", "Page=1"))
    assert again.body["recordings"] == []


async def _is_complete(_: Stage, answer: Answer) -> None:
    assert (answer.body["status"], answer.body["duration"]) == ("completed", "1")


async def _goes_on(_: Stage, answer: Answer) -> None:
    assert (answer.body["status"], answer.body["duration"]) == ("in-progress", None)


async def _is_a_recording(_: Stage, answer: Answer) -> None:
    assert answer.headers["Content-Type"] == "audio/wav" and answer.raw[:4] == b"RIFF"


async def _is_outside(_: Stage, answer: Answer) -> None:
    assert (answer.body["code"], answer.body["status"]) == (20416, 416)


CASES: tuple[Case, ...] = (
    *row(
        f"GET {_ALL}",
        ok(before=(_two_recordings,), query={"PageSize": "1"}, then=_leads_to_the_next),
        ok(name="of a call", query={"CallSid": recorded_call}, then=_has_one),
        ok(name="of another day", query={"DateCreated": "2001-01-01"}, then=_is_empty),
        unseen(then=_is_empty),
        foreign(403, "20403", path={"sid": account_sid("own")}),
        foreign(403, "20403", name="of a call", query={"CallSid": ended_call}),
        refused(404, "20404", query={"CallSid": NOWHERE}),
        refused(400, "20001", query={"ConferenceSid": NOWHERE}, fields=("ConferenceSid",)),
        refused(400, "20001", name="no time", query={"DateCreated>": "noon"}, fields=("DateCreated>",)),
        refused(400, "20001", name="no token", query={"PageToken": "x"}, fields=("PageToken",)),
    ),
    *row(
        f"GET {_OF_CALL}",
        ok(path={"callSid": recorded_call}, then=_has_one),
        ok(name="of none", path={"callSid": ended_call}, then=_is_empty),
        foreign(403, "20403", path={"callSid": ended_call}),
        refused(404, "20404", path={"callSid": NOWHERE}),
        refused(
            400,
            "20001",
            path={"callSid": ended_call},
            query={"DateCreated": "2026-01-01"},
            fields=("DateCreated",),
        ),
    ),
    *row(
        f"GET {_ONE}",
        ok(path={"recordingSid": recorded_call}, then=_is_complete),
        ok(name="that is being made", path={"recordingSid": recording_call}, then=_goes_on),
        foreign(403, "20403", path={"recordingSid": ended_call}),
        refused(404, "20404", path={"recordingSid": NOWHERE}),
        refused(404, "20404", name="of none", path={"recordingSid": ended_call}),
    ),
    *row(
        f"GET {_FILE}",
        ok(path={"recordingSid": recorded_call}, then=_is_a_recording),
        refused(
            416,
            "20416",
            path={"recordingSid": recorded_call},
            headers={"Range": "bytes=999999999-"},
            then=_is_outside,
        ),
        foreign(403, "20403", path={"recordingSid": ended_call}),
        refused(404, "20404", path={"recordingSid": ended_call}),
    ),
    *row(
        f"DELETE {_ONE}",
        ok(204, path={"recordingSid": recorded_call}),
        foreign(403, "20403", path={"recordingSid": ended_call}),
        refused(404, "20404", path={"recordingSid": ended_call}),
        refused(409, "20409", path={"recordingSid": recording_call}),
    ),
)
