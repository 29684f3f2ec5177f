"""Conferences as Twilio's clients ask for them; beyond the specification's rows."""

from __future__ import annotations

import uuid

from tests.contract.cases import Case, foreign, ok, refused, row, unseen
from tests.contract.givens import ECHO, NOWHERE, account_sid, caller_id, part, parts
from tests.contract.stage import Answer, Stage
from tests.support.waiting import until

_ALL = "/2010-04-01/Accounts/{sid}/Conferences.json"
_ONE = "/2010-04-01/Accounts/{sid}/Conferences/{conferenceSid}.json"
_MEMBERS = "/2010-04-01/Accounts/{sid}/Conferences/{conferenceSid}/Participants.json"
_MEMBER = "/2010-04-01/Accounts/{sid}/Conferences/{conferenceSid}/Participants/{callSid}.json"


async def _conference(stage: Stage) -> dict[str, str]:
    """A conference that one call has begun and another has joined."""
    name, root = f"sales-{uuid.uuid4()}", f"/2010-04-01/Accounts/{stage.own.account_sid}"
    document = f"<Response><Dial><Conference>{name}</Conference></Dial><Pause length='60'/></Response>"
    placed = {"From": await caller_id()(stage), "To": ECHO, "Twiml": document}
    for number in (1, 2):
        call = (await stage.ask("POST", f"{root}/Calls.json", body=placed)).body
        await stage.call_when(call["sid"], "in-progress")
        found = await _members(stage, root, name, number)
    return {"conferenceSid": found[-1]["conference_sid"], "callSid": call["sid"], "name": name}


async def _members(stage: Stage, root: str, name: str, number: int) -> list[dict[str, str]]:
    """The members of a conference, once there are so many."""
    found: list[dict[str, str]] = []

    async def complete() -> bool:
        listed = await stage.ask("GET", f"{root}/Conferences.json", query={"FriendlyName": name})
        for conference in listed.body["conferences"]:
            uri = conference["subresource_uris"]["participants"]
            found[:] = (await stage.ask("GET", uri)).body["participants"]
        return len(found) == number

    await until(complete)
    return found


async def _is_shown(stage: Stage, answer: Answer) -> None:
    (conference,) = answer.body["conferences"]
    assert conference["status"] == "in-progress" and answer.body["next_page_uri"] is None
    assert (await stage.ask("GET", conference["uri"])).body == conference


async def _is_empty(_: Stage, answer: Answer) -> None:
    assert answer.body["conferences"] == []


async def _has_two_pages(stage: Stage, answer: Answer) -> None:
    after = (await stage.ask("GET", answer.body["next_page_uri"])).body
    members = answer.body["participants"] + after["participants"]
    assert len({member["call_sid"] for member in members}) == 2 and after["next_page_uri"] is None
    assert not any(member["muted"] or member["hold"] for member in members)


async def _has_nobody(_: Stage, answer: Answer) -> None:
    assert answer.body["participants"] == []


async def _is_over(stage: Stage, answer: Answer) -> None:
    assert answer.body["status"] == "completed"
    assert (await stage.ask("GET", answer.body["uri"])).status == 404


async def _is_muted(stage: Stage, answer: Answer) -> None:
    assert (answer.body["muted"], answer.body["hold"]) == (True, False)
    assert (await stage.ask("GET", answer.body["uri"])).body == answer.body


async def _is_held(stage: Stage, answer: Answer) -> None:
    assert (answer.body["muted"], answer.body["hold"]) == (False, True)
    back = await stage.ask("POST", answer.body["uri"], body={"Hold": False})
    assert back.body["hold"] is False


async def _is_gone(stage: Stage, _: Answer) -> None:
    uri = _MEMBER.format(sid=stage.own.account_sid, **stage.kept["removed"])
    assert (await stage.ask("GET", uri)).status == 404
    assert (await stage.call(stage.kept["removed"]["callSid"]))["status"] == "in-progress"


async def _removed(stage: Stage) -> dict[str, str]:
    stage.kept["removed"] = found = await _conference(stage)
    return found


_FOUND = parts(_conference, "conferenceSid", "callSid")
_CONFERENCE = {"conferenceSid": part(_conference, "conferenceSid", first=True)}
CASES: tuple[Case, ...] = (
    *row(
        f"GET {_ALL}",
        ok(query={"FriendlyName": part(_conference, "name", first=True)}, then=_is_shown),
        ok(name="that are over", query={"Status": "completed"}, then=_is_empty),
        unseen(then=_is_empty),
        foreign(403, "20403", path={"sid": account_sid("own")}),
        refused(400, "20001", query={"Status": "on"}, fields=("Status",)),
        refused(
            400, "20001", name="no counterpart", query={"DateCreated": "2026-01-01"}, fields=("DateCreated",)
        ),
    ),
    *row(
        f"GET {_ONE}",
        ok(path=_CONFERENCE),
        foreign(404, "20404", path=_CONFERENCE),
        refused(404, "20404", path={"conferenceSid": NOWHERE}),
    ),
    *row(
        f"POST {_ONE}",
        ok(path=_CONFERENCE, body={"Status": "completed"}, then=_is_over),
        foreign(404, "20404", path=_CONFERENCE, body={"Status": "completed"}),
        refused(404, "20404", path={"conferenceSid": NOWHERE}, body={"Status": "completed"}),
        refused(
            400,
            "20001",
            path={"conferenceSid": NOWHERE},
            body={"Status": "init", "AnnounceUrl": "https://a.example/"},
            fields=("Status", "AnnounceUrl"),
        ),
    ),
    *row(
        f"GET {_MEMBERS}",
        ok(path=_CONFERENCE, query={"PageSize": "1"}, then=_has_two_pages),
        ok(name="that are muted", path=_CONFERENCE, query={"Muted": "true"}, then=_has_nobody),
        foreign(404, "20404", path=_CONFERENCE),
        refused(404, "20404", path={"conferenceSid": NOWHERE}),
    ),
    *row(
        f"GET {_MEMBER}",
        ok(path=_FOUND),
        foreign(404, "20404", path=_FOUND),
        refused(404, "20404", path={**_CONFERENCE, "callSid": NOWHERE}),
    ),
    *row(
        f"POST {_MEMBER}",
        ok(path=_FOUND, body={"Muted": "true"}, then=_is_muted),
        ok(name="held", path=_FOUND, body={"Hold": "true"}, then=_is_held),
        foreign(404, "20404", path=_FOUND, body={"Muted": "true"}),
        refused(404, "20404", path={**_CONFERENCE, "callSid": NOWHERE}, body={"Muted": "true"}),
        refused(
            400,
            "20001",
            path={"conferenceSid": NOWHERE, "callSid": NOWHERE},
            body={"Hold": "soon", "HoldUrl": "https://a.example/"},
            fields=("Hold", "HoldUrl"),
        ),
        refused(
            400,
            "20001",
            name="no change",
            path={"conferenceSid": NOWHERE, "callSid": NOWHERE},
            body={},
            fields=("Muted",),
        ),
    ),
    *row(
        f"DELETE {_MEMBER}",
        ok(204, path=parts(_removed, "conferenceSid", "callSid"), then=_is_gone),
        foreign(404, "20404", path=_FOUND),
        refused(404, "20404", path={**_CONFERENCE, "callSid": NOWHERE}),
    ),
)
