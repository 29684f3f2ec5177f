"""Masking sessions and the numbers that are enrolled for them."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

from tests.contract.cases import Given, foreign, ok, refused, row, unseen
from tests.contract.givens import (
    NOWHERE,
    add_number,
    bound_number,
    database_refuses,
    no_platform_carrier,
    nothing,
    registered_number,
    taken_number,
)
from tests.contract.stage import Answer, Stage

_SESSIONS, _NUMBERS = "/v1/masking/sessions", "/v1/masking/numbers"
_SESSION = f"{_SESSIONS}/{{session_id}}"
_mobiles = itertools.count(9810200000)


async def _mobile(_: Stage) -> str:
    return str(next(_mobiles))


async def _enrolled(stage: Stage) -> str:
    """A number that is enrolled for masking; one for all cases."""
    if "masked number" not in stage.kept:
        stage.kept["masked number"] = (await _enrol(stage))["number"]
    return str(stage.kept["masked number"])


async def _enrol(stage: Stage) -> dict[str, Any]:
    number = (await add_number(stage, "own"))[1]
    enrolled = await stage.data("POST", _NUMBERS, body={"number": number})
    assert isinstance(enrolled, dict)
    return enrolled


async def _enrolled_id(stage: Stage) -> str:
    """The id of a number that nothing else uses."""
    return str((await _enrol(stage))["phone_number_id"])


async def _used_number_id(stage: Stage) -> str:
    """The id of a number that a session is active on."""
    enrolled = await _enrol(stage)
    body = {
        "party_a": await _mobile(stage),
        "party_b": await _mobile(stage),
        "masked_number": enrolled["number"],
    }
    await stage.data("POST", _SESSIONS, body=body)
    return str(enrolled["phone_number_id"])


_BODY = {"party_a": _mobile, "party_b": _mobile, "masked_number": _enrolled}


async def _session(stage: Stage) -> str:
    body = {name: await given(stage) for name, given in _BODY.items()}
    return str((await stage.data("POST", _SESSIONS, body=body))["session_id"])


async def _closed_session(stage: Stage) -> str:
    session_id = await _session(stage)
    await stage.data("DELETE", f"{_SESSIONS}/{session_id}")
    return session_id


async def _busy_party(stage: Stage) -> str:
    """A party that has a session on the enrolled number already."""
    body = {name: await given(stage) for name, given in _BODY.items()}
    await stage.data("POST", _SESSIONS, body=body)
    return str(body["party_a"])


async def _used_key(stage: Stage) -> str:
    """An idempotency key that another session was made with."""
    key = str(uuid.uuid4())
    body = {name: await given(stage) for name, given in _BODY.items()}
    await stage.data("POST", _SESSIONS, body=body, headers={"Idempotency-Key": key})
    return key


async def _number(stage: Stage) -> str:
    """A number of the account, in E.164, not wired."""
    return (await add_number(stage, "own"))[1]


async def _number_of(stage: Stage, number_id: str) -> str:
    found = await stage.data("GET", f"/v1/phone-numbers/{number_id}")
    return str(found["number"])


def _e164(given: Given) -> Given:
    """A number instead of its id."""

    async def number(stage: Stage) -> str:
        return await _number_of(stage, await given(stage))

    return number


async def _is_active(stage: Stage, answer: Answer) -> None:
    session = answer.data
    assert (session["status"], session["ended_at"]) == ("active", None)
    assert session["masked_number"] == stage.kept["masked number"]
    assert [item["caller_number"] for item in session["mappings"]] == [
        f"+91{session['party_a']}",
        f"+91{session['party_b']}",
    ]
    shown = await stage.data("GET", f"{_SESSIONS}/{session['session_id']}")
    assert shown == session
    listed = await stage.ask("GET", _SESSIONS, query={"party": session["party_b"], "status": "active"})
    assert ([item["session_id"] for item in listed.data], listed.meta["total"]) == (
        [session["session_id"]],
        1,
    )


async def _is_closed(stage: Stage, answer: Answer) -> None:
    session = answer.data
    assert session["status"] == "closed" and session["ended_at"] is not None
    again = await stage.data("DELETE", f"{_SESSIONS}/{session['session_id']}")
    assert again == session


async def _is_changed(_: Stage, answer: Answer) -> None:
    assert (answer.data["call_time_limit_sec"], answer.data["record"]) == (600, None)


async def _has_sessions(_: Stage, answer: Answer) -> None:
    assert answer.meta["total"] >= len(answer.data) > 0


async def _is_enrolled(stage: Stage, answer: Answer) -> None:
    wiring = await stage.data("GET", f"/v1/phone-numbers/{answer.data['phone_number_id']}/telephony")
    assert (wiring["inbound_target"], wiring["outbound_capable"]) == ("masking", True)
    assert answer.data["language"] == "hi"


async def _is_withdrawn(stage: Stage, _: Answer) -> None:
    listed = await stage.data("GET", _NUMBERS, query={"per_page": "100"})
    assert all(item["status"] == "active" for item in listed)


CASES = (
    *row(
        f"POST {_SESSIONS}",
        ok(201, body=_BODY, then=_is_active),
        refused(
            400,
            "validation",
            body={"party_a": 5, "expires_in_sec": 1, "call_time_limit_sec": 5, "colour": "red"},
            fields=("party_a", "party_b", "expires_in_sec", "call_time_limit_sec", "colour"),
        ),
        refused(
            400,
            "invalid_numbers",
            body={"party_a": "9810100001", "party_b": "9810100001"},
            fields=("party_b",),
        ),
        refused(403, "number_not_owned", body={**_BODY, "masked_number": _number}),
        foreign(403, "number_not_owned", body=_BODY),
        refused(409, "conflict", body={**_BODY, "party_b": _busy_party}),
        refused(409, "idempotency_conflict", body=_BODY, headers={"Idempotency-Key": _used_key}),
        refused(503, "service_unavailable", body=_BODY, during=database_refuses),
    ),
    *row(
        f"GET {_SESSIONS}",
        ok(before=(_session,), then=_has_sessions),
        refused(
            400,
            "validation",
            query={"status": "gone", "party": "12", "masked_number": "x", "page": "0", "colour": "red"},
            fields=("status", "party", "masked_number", "page"),
        ),
        unseen(before=(_session,), then=nothing),
    ),
    *row(
        f"GET {_SESSION}",
        ok(path={"session_id": _session}),
        foreign(404, "not_found", path={"session_id": _session}),
        refused(404, "not_found", path={"session_id": "42"}),
    ),
    *row(
        f"PATCH {_SESSION}",
        ok(
            path={"session_id": _session},
            body={"expires_in_sec": 3600, "call_time_limit_sec": 600, "record": None},
            then=_is_changed,
        ),
        refused(400, "validation", path={"session_id": _session}, body={}, fields=("body",)),
        refused(
            400,
            "validation",
            name="no expiry",
            path={"session_id": _session},
            body={"expires_in_sec": None},
            fields=("expires_in_sec",),
        ),
        foreign(404, "not_found", path={"session_id": _session}, body={"record": True}),
        refused(404, "not_found", path={"session_id": NOWHERE}, body={"record": True}),
        refused(409, "conflict", path={"session_id": _closed_session}, body={"record": True}),
    ),
    *row(
        f"DELETE {_SESSION}",
        ok(path={"session_id": _session}, then=_is_closed),
        foreign(404, "not_found", path={"session_id": _session}),
        refused(404, "not_found", path={"session_id": NOWHERE}),
    ),
    *row(
        f"GET {_NUMBERS}",
        ok(before=(_enrolled,), then=_has_sessions),
        refused(400, "validation", query={"page": "x"}, fields=("page",)),
        unseen(before=(_enrolled,), then=nothing),
    ),
    *row(
        f"POST {_NUMBERS}",
        ok(201, body={"number": _number, "language": "hi-IN"}, then=_is_enrolled),
        ok(201, name="another language", body={"number": _enrolled, "language": "hi"}, then=_is_enrolled),
        refused(
            400,
            "validation",
            body={"number": "12", "language": "!", "force": 1},
            fields=("number", "language", "force"),
        ),
        refused(
            400,
            "validation",
            name="a language that is not spoken",
            body={"number": _number, "language": "fr"},
            fields=("language",),
        ),
        foreign(404, "not_found", by="own", body={"number": taken_number}),
        refused(404, "not_found", body={"number": "+918047599999"}),
        refused(409, "inbound_conflict", body={"number": _e164(bound_number)}),
        refused(503, "not_configured", body={"number": _number}, during=no_platform_carrier),
    ),
    *row(
        f"DELETE {_NUMBERS}/{{phone_number_id}}",
        ok(204, path={"phone_number_id": _enrolled_id}, then=_is_withdrawn),
        ok(
            204,
            name="with its sessions",
            path={"phone_number_id": _used_number_id},
            query={"force": "true"},
            then=_is_withdrawn,
        ),
        foreign(404, "not_found", path={"phone_number_id": _enrolled_id}),
        refused(404, "not_found", path={"phone_number_id": registered_number}),
        refused(409, "conflict", path={"phone_number_id": _used_number_id}),
    ),
)
