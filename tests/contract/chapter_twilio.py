"""Calls as Twilio's clients ask for them; beyond the specification's rows."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from callcontrol.aio.tokens import utc_now
from callcontrol.egress.requests import form_signature
from tests.contract.cases import Case, Given, foreign, ok, refused, row, unseen
from tests.contract.givens import (
    BUSY,
    ECHO,
    NOWHERE,
    account_sid,
    answered_call,
    caller_id,
    ended_call,
    ringing_call,
    unregistered_caller_id,
)
from tests.contract.stage import Answer, Stage
from tests.support.waiting import until

_ALL = "/2010-04-01/Accounts/{sid}/Calls.json"
_ONE = "/2010-04-01/Accounts/{sid}/Calls/{callSid}.json"
_COMPLETED = {"Status": "completed"}
_SAY = "<Response><Say>Hello.</Say><Pause length='60'/></Response>"
_TOO_MANY_DIGITS = (
    "<Response><Pause length='1'/><Gather action='https://a.example/' numDigits='99'/></Response>"
)
_PLACED: Mapping[str, Any] = {"From": caller_id(), "To": ECHO, "Twiml": _SAY}
_MORE_INFO = "https://www.twilio.com/docs/errors/{}"


def _basic(user: str, key: str = "own") -> Given:
    """The header of a client that sends an account and a key by Basic."""

    async def given(stage: Stage) -> str:
        credentials = f"{stage.accounts[user].account_sid}:{stage.accounts[key].key}"
        return "Basic " + base64.b64encode(credentials.encode()).decode()

    return given


async def _is_placed(stage: Stage, answer: Answer) -> None:
    assert (answer.body["status"], answer.body["to"]) == ("queued", ECHO)
    await stage.call_when(answer.body["sid"], "in-progress")


async def _status_url(stage: Stage) -> str:
    return stage.receiver.url("/twilio-status")


async def _tells_in_forms(stage: Stage, answer: Answer) -> None:
    """The server of the customer gets the chosen events, in forms that are signed as its library checks."""
    call_sid = answer.body["sid"]
    await stage.call_when(call_sid, "completed")

    def told() -> list[tuple[dict[str, str], str]]:
        got = [item for item in stage.receiver.requests if item.path == "/twilio-status"]
        forms = [(dict(parse_qsl(item.body.decode())), item.headers["X-Twilio-Signature"]) for item in got]
        return [(form, signature) for form, signature in forms if form["CallSid"] == call_sid]

    async def complete() -> bool:
        return len(told()) == 2

    await until(complete)
    account = stage.server.storage.directory.account(stage.own.account_sid)
    assert account is not None
    secret, _ = account.stream_secrets(utc_now())
    assert secret is not None
    found = {form["CallStatus"]: form["SequenceNumber"] for form, _ in told()}
    assert found == {"in-progress": "0", "completed": "1"}
    url = stage.receiver.url("/twilio-status")
    assert all(signature == form_signature(secret, url, form) for form, signature in told())


async def _is_ended(_: Stage, answer: Answer) -> None:
    assert (answer.body["status"], answer.body["direction"]) == ("busy", "outbound-api")
    assert answer.body["date_created"].endswith("+0000") and answer.body["duration"] == "0"


async def _ends(stage: Stage, answer: Answer) -> None:
    assert answer.body["status"] == "completed"
    await stage.call_when(answer.body["sid"], "completed", "canceled")


async def _goes_on(stage: Stage, answer: Answer) -> None:
    assert answer.body["status"] == "in-progress"


async def _ends_by_its_document(stage: Stage, answer: Answer) -> None:
    assert answer.body["status"] == "in-progress"
    await stage.call_when(answer.body["sid"], "completed")


async def _is_cancelled(stage: Stage, answer: Answer) -> None:
    assert answer.body["status"] == "canceled"
    await stage.call_when(answer.body["sid"], "canceled")


async def _is_their_error(_: Stage, answer: Answer) -> None:
    told = {"code": 20404, "message": answer.message, "more_info": _MORE_INFO.format(20404), "status": 404}
    assert answer.body == told


async def _names_the_party(_: Stage, answer: Answer) -> None:
    assert "To" in answer.message


async def _leads_to_the_next(stage: Stage, answer: Answer) -> None:
    """The pages follow each other without a gap, and back."""
    page = answer.body
    assert (page["page"], page["page_size"], page["start"], len(page["calls"])) == (0, 1, 0, 1)
    assert page["previous_page_uri"] is None
    after = (await stage.ask("GET", page["next_page_uri"])).body
    assert (after["page"], after["start"]) == (1, 1)
    assert after["calls"][0]["sid"] != page["calls"][0]["sid"]
    assert {page["calls"][0]["to"], after["calls"][0]["to"]} == {BUSY}
    back = (await stage.ask("GET", after["previous_page_uri"])).body
    assert back["calls"] == page["calls"]
    assert (await stage.ask("GET", after["uri"])).body == after


async def _is_the_last(_: Stage, answer: Answer) -> None:
    page = answer.body
    assert page["calls"] == [] and page["next_page_uri"] is None and page["uri"] == page["first_page_uri"]


async def _has_none_of_the_others(stage: Stage, answer: Answer) -> None:
    assert {call["account_sid"] for call in answer.body["calls"]} <= {stage.accounts["other"].account_sid}


async def _two_busy_calls(stage: Stage) -> str:
    """A number that was called twice."""
    stage.kept.pop("ended call", None)
    await ended_call(stage)
    stage.kept.pop("ended call")
    await ended_call(stage)
    return BUSY


CASES: tuple[Case, ...] = (
    *row(
        f"POST {_ALL}",
        ok(201, body=_PLACED, then=_is_placed),
        ok(
            201,
            name="with every parameter",
            body={
                "From": caller_id(),
                "To": ECHO,
                "Url": "https://app.example.com/voice",
                "Method": "GET",
                "FallbackUrl": "https://app.example.com/fallback",
                "FallbackMethod": "GET",
                "StatusCallback": "https://app.example.com/status",
                "StatusCallbackEvent": ["ringing", "completed"],
                "StatusCallbackMethod": "POST",
                "Record": "true",
                "RecordingChannels": "dual",
                "Timeout": "300",
                "TimeLimit": "60",
                "MachineDetection": "Enable",
                "SendDigits": "ww1",
            },
        ),
        ok(
            201,
            name="with a status callback",
            body={
                **_PLACED,
                "Twiml": "<Response/>",
                "StatusCallback": _status_url,
                "StatusCallbackEvent": ["answered", "completed"],
            },
            then=_tells_in_forms,
        ),
        foreign(403, "20403", path={"sid": account_sid("own")}, body=_PLACED),
        foreign(403, "20403", name="another's number", body=_PLACED),
        refused(402, "20402", by="poor", body={**_PLACED, "From": caller_id("poor")}),
        refused(402, "20402", name="spent", by="thrifty", body={**_PLACED, "From": caller_id("thrifty")}),
        refused(403, "20403", body={**_PLACED, "From": unregistered_caller_id}),
        refused(
            400,
            "20001",
            name="no counterpart",
            body={**_PLACED, "Trim": "trim-silence", "AsyncAmd": "true", "Timeout": "soon"},
            fields=("Trim", "AsyncAmd", "Timeout"),
        ),
        refused(400, "20001", name="nothing to do", body={"From": caller_id(), "To": ECHO}, fields=("Url",)),
        refused(
            400, "20001", name="two things", body={**_PLACED, "Url": "https://a.example/"}, fields=("Twiml",)
        ),
        refused(
            400,
            "20001",
            name="another method of the fallback",
            body={**_PLACED, "FallbackUrl": "https://a.example/", "FallbackMethod": "GET"},
            fields=("FallbackMethod",),
        ),
        refused(
            400,
            "20001",
            name="no number of a country",
            body={**_PLACED, "To": "+99912345678"},
            fields=("To",),
            then=_names_the_party,
        ),
        refused(400, "20001", name="no document", body={**_PLACED, "Twiml": "<Response>"}, fields=("Twiml",)),
        refused(
            400,
            "20001",
            name="unknown element",
            body={**_PLACED, "Twiml": "<Response><Enqueue/></Response>"},
            fields=("Twiml.Response.Enqueue[1]",),
        ),
        refused(
            400,
            "20001",
            name="wrong attribute",
            body={
                **_PLACED,
                "Twiml": _TOO_MANY_DIGITS,
            },
            fields=("Twiml.Response.Gather[2].numDigits",),
        ),
        refused(
            400,
            "20001",
            name="an action without an address",
            body={**_PLACED, "Twiml": "<Response><Gather/></Response>"},
            fields=("Twiml.Response.Gather[1].action",),
        ),
    ),
    *row(
        f"GET {_ALL}",
        ok(
            before=(_two_busy_calls,),
            query={"PageSize": "1", "To": BUSY, "Status": "busy"},
            then=_leads_to_the_next,
        ),
        ok(name="before all", query={"StartTime<": "2001-01-01T00:00:00Z"}, then=_is_the_last),
        ok(name="of a day", query={"StartTime": "2001-01-01"}, then=_is_the_last),
        ok(name="by account and key", headers={"Authorization": _basic("own")}),
        unseen(then=_has_none_of_the_others),
        foreign(403, "20403", path={"sid": account_sid("own")}),
        refused(400, "20001", query={"Status": "on"}, fields=("Status",)),
        refused(
            400,
            "20001",
            name="no counterpart",
            query={"ParentCallSid": NOWHERE, "EndTime>": "2026-01-01"},
            fields=("ParentCallSid", "EndTime>"),
        ),
        refused(400, "20001", name="no time", query={"StartTime>": "noon"}, fields=("StartTime>",)),
        refused(
            400,
            "20001",
            name="a day and a time",
            query={"StartTime": "2026-01-01", "StartTime>": "2026-01-01"},
            fields=("StartTime",),
        ),
        refused(400, "20001", name="no page", query={"PageToken": "x", "Page": "-1"}, fields=("Page",)),
        refused(400, "20001", name="no token", query={"PageToken": "x"}, fields=("PageToken",)),
    ),
    *row(
        f"GET {_ONE}",
        ok(path={"callSid": ended_call}, then=_is_ended),
        ok(
            name="by account and key",
            path={"callSid": ended_call},
            headers={"Authorization": _basic("own")},
            then=_is_ended,
        ),
        foreign(403, "20403", path={"callSid": ended_call, "sid": account_sid("own")}),
        refused(404, "20404", path={"callSid": NOWHERE}, then=_is_their_error),
        refused(
            401,
            "20003",
            name="the user is not the account",
            path={"callSid": ended_call},
            headers={"Authorization": _basic("other")},
        ),
        refused(
            401,
            "20003",
            name="neither account nor key",
            path={"callSid": ended_call},
            headers={"Authorization": "Basic !"},
        ),
    ),
    *row(
        f"POST {_ONE}",
        ok(path={"callSid": answered_call}, body=_COMPLETED, then=_ends),
        ok(name="that rings", path={"callSid": ringing_call}, body=_COMPLETED, then=_ends),
        ok(
            name="taken back", path={"callSid": ringing_call}, body={"Status": "canceled"}, then=_is_cancelled
        ),
        ok(
            name="by a document",
            path={"callSid": answered_call},
            body={"Twiml": "<Response/>"},
            then=_ends_by_its_document,
        ),
        ok(
            name="by an address",
            path={"callSid": answered_call},
            body={"Url": "https://app.example.com/voice", "Method": "GET", "TimeLimit": "600"},
            then=_goes_on,
        ),
        foreign(403, "20403", path={"callSid": ended_call, "sid": account_sid("own")}, body=_COMPLETED),
        refused(400, "20001", path={"callSid": ended_call}, body={"Status": "ringing"}, fields=("Status",)),
        refused(
            400,
            "20001",
            name="no change",
            path={"callSid": ended_call},
            body={"Method": "GET"},
            fields=("Status",),
        ),
        refused(
            400,
            "20001",
            name="no counterpart",
            path={"callSid": ended_call},
            body={**_COMPLETED, "StatusCallback": "https://a.example/"},
            fields=("StatusCallback",),
        ),
        refused(
            400,
            "20001",
            name="two changes",
            path={"callSid": answered_call},
            body={**_COMPLETED, "Twiml": _SAY},
            fields=("Twiml",),
        ),
        refused(
            400,
            "20001",
            name="wrong attribute",
            path={"callSid": answered_call},
            body={"Twiml": "<Response><Pause length='-1'/></Response>"},
            fields=("Twiml.Response.Pause[1].length",),
        ),
        refused(
            409,
            "20409",
            name="canceled too late",
            path={"callSid": answered_call},
            body={"Status": "canceled"},
        ),
        refused(409, "20409", path={"callSid": ringing_call}, body={"Twiml": _SAY}),
        refused(
            404, "20404", name="ended", path={"callSid": ended_call}, body=_COMPLETED, then=_is_their_error
        ),
        refused(404, "20404", path={"callSid": NOWHERE}, body=_COMPLETED),
    ),
)
