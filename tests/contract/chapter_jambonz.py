"""Calls and applications as jambonz's clients ask for them; beyond the specification's rows."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from callcontrol.applications import aio as application_service
from tests.contract.cases import Case, foreign, ok, refused, row, unseen
from tests.contract.givens import (
    BUSY,
    ECHO,
    NOWHERE,
    account_sid,
    answered_call,
    attached_application,
    caller_id,
    ended_call,
    limited,
    ringing_call,
    unregistered_caller_id,
)
from tests.contract.stage import Answer, Stage
from tests.support.waiting import until

_ACCOUNT = "/jambonz/v1/Accounts/{sid}"
_ALL, _ONE = f"{_ACCOUNT}/Calls", f"{_ACCOUNT}/Calls/{{callSid}}"
_APPS, _APP = f"{_ACCOUNT}/Applications", f"{_ACCOUNT}/Applications/{{applicationSid}}"
_HOOK = "https://app.example.com/hello"
_TO = {"type": "phone", "number": ECHO}
_PLACED: Mapping[str, Any] = {"from": caller_id(), "to": _TO, "call_hook": _HOOK}
_COMPLETED = {"call_status": "completed"}
_NEW_APP = {"name": "Hello", "call_hook": {"url": _HOOK, "method": "GET"}, "call_status_hook": _HOOK}
_FORBIDDEN, _WRONG = (403, "FORBIDDEN"), (400, "VALIDATION_ERROR")


async def _hook(stage: Stage) -> str:
    return stage.receiver.url("/jambonz")


async def _status_hook(stage: Stage) -> str:
    return stage.receiver.url("/jambonz-status")


async def _is_placed(stage: Stage, answer: Answer) -> None:
    shown = (await stage.ask("GET", f"{_ALL.format(sid=stage.own.account_sid)}/{answer.body['sid']}")).body
    assert (shown["direction"], shown["to"]) == ("outbound", ECHO)
    await stage.call_when(answer.body["sid"], "in-progress")


async def _asks_and_tells(stage: Stage, answer: Answer) -> None:
    """The server is asked for verbs, then told how the call went, each time signed by jambonz's rule."""
    call_sid = answer.body["sid"]

    def told() -> list[dict[str, Any]]:
        found = []
        for item in stage.receiver.requests:
            if item.path in ("/jambonz", "/jambonz-status"):
                body = json.loads(item.body)
                if body["call_sid"] == call_sid:
                    _check_signature(stage, item.headers["Jambonz-Signature"], item.body)
                    found.append(body)
        return found

    async def complete() -> bool:
        return any(item["call_status"] == "completed" for item in told())

    await until(complete)
    assert {item["call_status"] for item in told()} == {"trying", "ringing", "in-progress", "completed"}
    assert all(item["customerData"] == {"order": 7} for item in told())
    (last,) = [item for item in told() if item["call_status"] == "completed"]
    assert (last["sip_status"], last["call_termination_by"]) == (200, "jambonz") and last["duration"] >= 0


def _check_signature(stage: Stage, signature: str, body: bytes) -> None:
    account = stage.server.storage.directory.account(stage.own.account_sid)
    assert account is not None and account.webhook_secret is not None
    time, *values = (part.split("=", 1)[1] for part in signature.split(","))
    signed = hmac.digest(account.webhook_secret.encode(), f"{time}.".encode() + body, hashlib.sha256)
    assert signed.hex() in values


async def _is_ended(_: Stage, answer: Answer) -> None:
    assert (answer.body["call_status"], answer.body["sip_status"], answer.body["duration"]) == (
        "busy",
        486,
        0,
    )


async def _is_among_them(stage: Stage, answer: Answer) -> None:
    assert await answered_call(stage) not in [call["call_sid"] for call in answer.body]
    listed = (await stage.ask("GET", _ALL.format(sid=stage.own.account_sid))).body
    assert listed and {call["call_status"] for call in listed} <= {
        "trying",
        "ringing",
        "in-progress",
        "queued",
    }


async def _are_busy(stage: Stage, answer: Answer) -> None:
    assert answer.body and {call["call_status"] for call in answer.body} == {"busy"}


async def _has_none_of_the_others(stage: Stage, answer: Answer) -> None:
    assert {item["account_sid"] for item in answer.body} <= {stage.accounts["other"].account_sid}


async def _is_their_error(_: Stage, answer: Answer) -> None:
    assert answer.body == {"msg": answer.message, "code": answer.code}


async def _is_kept(stage: Stage, answer: Answer) -> None:
    sid = answer.body["sid"]
    path = f"{_APPS.format(sid=stage.own.account_sid)}/{sid}"
    assert (await stage.ask("GET", path)).body == {
        "application_sid": sid,
        "account_sid": stage.own.account_sid,
        "name": "Hello",
        "call_hook": {"url": _HOOK, "method": "GET"},
        "call_status_hook": {"url": _HOOK, "method": "POST"},
        "record_all_calls": False,
    }


async def _application(stage: Stage) -> str:
    """The SID of an application that was made in this interface; one for all cases."""
    if "jambonz application" not in stage.kept:
        path = _APPS.format(sid=stage.own.account_sid)
        stage.kept["jambonz application"] = (await stage.ask("POST", path, body=_NEW_APP)).body["sid"]
    return str(stage.kept["jambonz application"])


async def _unused_application(stage: Stage) -> str:
    stage.kept.pop("jambonz application", None)
    sid = await _application(stage)
    stage.kept.pop("jambonz application")
    return sid


async def _other_application(stage: Stage) -> str:
    """The SID of an application of another kind."""
    body = {"name": "Bot", "target": "media_stream", "stream_url": stage.agent.url}
    return str((await stage.data("POST", "/v1/trunk-portal/applications", body=body))["app_sid"])


async def _asks_nobody(_: Stage, answer: Answer) -> None:
    assert (answer.body["name"], answer.body["call_hook"]) == ("Bot", None)


def _changes(method: str) -> tuple[Case, ...]:
    """The cases of a row that changes a call."""
    return row(
        f"{method} {_ONE}",
        ok(202, path={"callSid": answered_call}, body=_COMPLETED),
        ok(202, name="given up", path={"callSid": ringing_call}, body={"call_status": "no-answer"}),
        ok(202, name="muted", path={"callSid": answered_call}, body={"mute_status": "mute"}),
        ok(202, name="muted there", path={"callSid": answered_call}, body={"conf_mute_status": "mute"}),
        ok(
            202,
            name="several",
            path={"callSid": answered_call},
            body={
                "call_hook": {"url": _HOOK, "method": "POST"},
                "record": {"action": "startCallRecording"},
                "dtmf": {"digit": "1", "duration": 250},
            },
        ),
        foreign(*_FORBIDDEN, path={"callSid": ended_call, "sid": account_sid("own")}, body=_COMPLETED),
        refused(*_WRONG, path={"callSid": ended_call}, body={"call_status": "busy"}, fields=("call_status",)),
        refused(*_WRONG, name="no change", path={"callSid": ended_call}, body={}, fields=("body",)),
        refused(
            *_WRONG,
            name="no counterpart",
            path={"callSid": ended_call},
            body={"whisper": {"verb": "say", "text": "x"}, "sip_request": {"method": "INFO"}},
            fields=("whisper", "sip_request"),
        ),
        refused(
            *_WRONG,
            name="two ends",
            path={"callSid": ended_call},
            body={**_COMPLETED, "mute_status": "mute", "conf_mute_status": "mute"},
            fields=("call_status", "conf_mute_status"),
        ),
        refused(
            *_WRONG,
            name="no address",
            path={"callSid": answered_call},
            body={"call_hook": {"url": "ftp://a.example/", "password": "x"}},
            fields=("call_hook.url", "call_hook.password"),
        ),
        refused(409, "CONFLICT", path={"callSid": ringing_call}, body={"call_hook": _HOOK}),
        refused(404, "CALL_ENDED", name="ended", path={"callSid": ended_call}, body=_COMPLETED),
        refused(404, "NOT_FOUND", path={"callSid": NOWHERE}, body=_COMPLETED, then=_is_their_error),
    )


CASES: tuple[Case, ...] = (
    *row(
        f"POST {_ALL}",
        ok(201, body=_PLACED, then=_is_placed),
        ok(
            201,
            name="with a tag and events",
            body={
                **_PLACED,
                "call_hook": {"url": _hook, "method": "POST"},
                "call_status_hook": {"url": _status_hook},
                "tag": {"order": 7},
                "timeout": 300,
                "timeLimit": 60,
                "callerName": "Shop",
                "headers": {"X-Order": "7"},
            },
            then=_asks_and_tells,
        ),
        ok(
            201,
            name="to an application over a WebSocket",
            body={**_PLACED, "call_hook": "wss://app.example.com/jambonz"},
        ),
        ok(
            201,
            name="with an application",
            body={"from": caller_id(), "to": _TO, "application_sid": _application},
        ),
        foreign(*_FORBIDDEN, path={"sid": account_sid("own")}, body=_PLACED),
        foreign(403, "NUMBER_NOT_OWNED", name="another's number", body=_PLACED),
        foreign(
            *_FORBIDDEN,
            name="another's application",
            body={"from": caller_id("other"), "to": _TO, "application_sid": _application},
        ),
        refused(402, "INSUFFICIENT_BALANCE", by="poor", body={**_PLACED, "from": caller_id("poor")}),
        refused(402, "SPEND_LIMIT_EXCEEDED", by="thrifty", body={**_PLACED, "from": caller_id("thrifty")}),
        refused(403, "NUMBER_NOT_OWNED", body={**_PLACED, "from": unregistered_caller_id}),
        refused(
            *_WRONG,
            body={
                **_PLACED,
                "to": {"type": "sip", "number": ECHO},
                "call_status_hook": {"url": _HOOK, "method": "GET"},
                "amd": {"actionHook": "/amd"},
                "timeout": 0,
                "tag": {"a": "x" * 5000},
            },
            fields=("to.sipUri", "call_status_hook.method", "amd", "timeout", "tag"),
        ),
        refused(*_WRONG, name="nothing to do", body={"from": caller_id(), "to": _TO}, fields=("call_hook",)),
        refused(
            *_WRONG,
            name="no number of a country",
            body={**_PLACED, "to": {"type": "phone", "number": "+99912345678"}},
            fields=("to.number",),
        ),
        refused(
            *_WRONG,
            name="no address of a party",
            body={**_PLACED, "to": {"type": "sip", "sipUri": "desk"}},
            fields=("to.sipUri",),
        ),
        refused(
            *_WRONG,
            name="no address of a user",
            body={**_PLACED, "to": {"type": "user", "name": "bob"}},
            fields=("to.name",),
        ),
        refused(
            *_WRONG,
            name="no application",
            body={"from": caller_id(), "to": _TO, "application_sid": NOWHERE},
            fields=("application_sid",),
        ),
    ),
    *row(
        f"GET {_ALL}",
        ok(query={"direction": "inbound"}, then=_is_among_them),
        ok(
            name="that have ended",
            before=(ended_call,),
            query={"callStatus": "busy", "to": BUSY},
            then=_are_busy,
        ),
        ok(name="in a status that no call has", query={"callStatus": "early-media"}),
        unseen(then=_has_none_of_the_others),
        foreign(*_FORBIDDEN, path={"sid": account_sid("own")}),
        refused(*_WRONG, query={"callStatus": "on", "direction": "up"}, fields=("callStatus", "direction")),
    ),
    *row(
        f"GET {_ONE}",
        ok(path={"callSid": ended_call}, then=_is_ended),
        foreign(*_FORBIDDEN, path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": NOWHERE}, then=_is_their_error),
    ),
    *_changes("PUT"),
    *_changes("POST"),
    *row(
        f"DELETE {_ONE}",
        ok(204, path={"callSid": answered_call}),
        ok(204, name="that rings", path={"callSid": ringing_call}),
        foreign(*_FORBIDDEN, path={"callSid": ended_call}),
        refused(404, "CALL_ENDED", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": NOWHERE}),
    ),
    *row(
        f"POST {_APPS}",
        ok(201, body=_NEW_APP, then=_is_kept),
        foreign(*_FORBIDDEN, path={"sid": account_sid("own")}, body=_NEW_APP),
        refused(
            *_WRONG,
            body={
                "name": "Hello",
                "call_hook": 5,
                "call_status_hook": {"url": _HOOK, "method": "GET"},
                "messaging_hook": _HOOK,
            },
            fields=("call_hook", "call_status_hook.method", "messaging_hook"),
        ),
        ok(201, name="over a WebSocket", body={**_NEW_APP, "call_hook": "wss://app.example.com/jambonz"}),
        refused(409, "CONFLICT", body=_NEW_APP, during=limited(application_service, "_MAX_APPLICATIONS")),
    ),
    *row(
        f"GET {_APPS}",
        ok(before=(_application,)),
        unseen(then=_has_none_of_the_others),
        foreign(*_FORBIDDEN, path={"sid": account_sid("own")}),
    ),
    *row(
        f"GET {_APP}",
        ok(path={"applicationSid": _application}),
        ok(name="of another kind", path={"applicationSid": _other_application}, then=_asks_nobody),
        foreign(*_FORBIDDEN, path={"applicationSid": _application}),
        refused(404, "NOT_FOUND", path={"applicationSid": NOWHERE}, then=_is_their_error),
    ),
    *row(
        f"DELETE {_APP}",
        ok(204, path={"applicationSid": _unused_application}),
        foreign(*_FORBIDDEN, path={"applicationSid": _application}),
        refused(404, "NOT_FOUND", path={"applicationSid": NOWHERE}),
        refused(409, "CONFLICT", path={"applicationSid": attached_application}),
    ),
)
