"""Calls as Twilio's clients ask for them; beyond the specification's rows."""

from __future__ import annotations

import base64

from tests.contract.cases import Case, Given, foreign, ok, refused, row
from tests.contract.givens import NOWHERE, account_sid, answered_call, ended_call, ringing_call
from tests.contract.stage import Answer, Stage

_ONE = "/2010-04-01/Accounts/{sid}/Calls/{callSid}.json"
_COMPLETED = {"Status": "completed"}


def _basic(user: str, key: str = "own") -> Given:
    """The header of a client that sends an account and a key by Basic."""

    async def given(stage: Stage) -> str:
        credentials = f"{stage.accounts[user].account_sid}:{stage.accounts[key].key}"
        return "Basic " + base64.b64encode(credentials.encode()).decode()

    return given


async def _is_ended(_: Stage, answer: Answer) -> None:
    assert (answer.body["status"], answer.body["direction"]) == ("busy", "outbound-api")
    assert answer.body["date_created"].endswith("+0000") and answer.body["duration"] == "0"


async def _ends(stage: Stage, answer: Answer) -> None:
    assert answer.body["status"] == "completed"
    await stage.call_when(answer.body["sid"], "completed", "canceled")


async def _is_cancelled(stage: Stage, answer: Answer) -> None:
    assert answer.body["status"] == "canceled"
    await stage.call_when(answer.body["sid"], "canceled")


async def _is_their_error(_: Stage, answer: Answer) -> None:
    assert answer.body == {"code": 20404, "message": answer.message, "status": 404}


CASES: tuple[Case, ...] = (
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
        foreign(403, "20403", path={"callSid": ended_call, "sid": account_sid("own")}, body=_COMPLETED),
        refused(400, "20001", path={"callSid": ended_call}, body={"Status": "ringing"}, fields=("Status",)),
        refused(
            400,
            "20001",
            name="canceled too late",
            path={"callSid": answered_call},
            body={"Status": "canceled"},
            fields=("Status",),
        ),
        refused(
            404, "20404", name="ended", path={"callSid": ended_call}, body=_COMPLETED, then=_is_their_error
        ),
        refused(404, "20404", path={"callSid": NOWHERE}, body=_COMPLETED),
    ),
)
