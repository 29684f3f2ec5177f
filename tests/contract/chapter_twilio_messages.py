"""Messages as Twilio's clients ask for them; beyond the specification's rows."""

from __future__ import annotations

import asyncio

from tests.contract.cases import Case, Given, foreign, ok, refused, row, unseen
from tests.contract.chapter_chat import opted_out
from tests.contract.givens import NOWHERE, account_sid, disconnected_channel
from tests.contract.stage import Answer, Stage
from tests.support.waiting import PATIENCE_S, look_again

_ALL = "/2010-04-01/Accounts/{sid}/Messages.json"
_ONE = "/2010-04-01/Accounts/{sid}/Messages/{messageSid}.json"
_TO, _REFUSED, _MANY = "+919800100000", "+919800100104", "+919800100177"


def _channel(by: str = "own") -> Given:
    """The number of an account's channel."""

    async def given(stage: Stage) -> str:
        return (await stage.server.services.channels.of(stage.accounts[by].account_sid)).number

    return given


async def _message(stage: Stage) -> str:
    return str((await _sent(stage, _TO))["sid"])


async def _two_messages(stage: Stage) -> str:
    for _ in range(2):
        await _sent(stage, _MANY)
    return _MANY


async def _sent(stage: Stage, to: str) -> dict[str, str]:
    body = {"To": to, "From": await _channel()(stage), "Body": "Your parcel is here."}
    answer = await stage.ask("POST", _ALL.format(sid=stage.own.account_sid), body=body)
    assert answer.status == 201, answer
    return dict(answer.body)


async def _is_read_in_the_end(stage: Stage, answer: Answer) -> None:
    assert (answer.body["body"], answer.body["num_media"]) == ("Your parcel is here.", "0")
    async with asyncio.timeout(PATIENCE_S):
        while (found := (await stage.ask("GET", answer.body["uri"])).body)["status"] != "read":
            assert found["status"] in ("queued", "sent", "delivered"), found
            await look_again()
    assert found["date_sent"].endswith("+0000") and found["direction"] == "outbound-api"


async def _is_a_picture(_: Stage, answer: Answer) -> None:
    assert (answer.body["body"], answer.body["num_media"]) == ("Our shop.", "1")


async def _has_failed(_: Stage, answer: Answer) -> None:
    assert answer.body["status"] == "failed" and answer.body["error_code"] in (63003, 63013)


async def _leads_to_the_next(stage: Stage, answer: Answer) -> None:
    key = stage.own.keys["messaging"]
    after = (await stage.ask("GET", answer.body["next_page_uri"], key=key)).body
    assert after["messages"][0]["sid"] != answer.body["messages"][0]["sid"]
    back = (await stage.ask("GET", after["previous_page_uri"], key=key)).body
    assert [found["sid"] for found in back["messages"]] == [found["sid"] for found in answer.body["messages"]]


async def _are_their_own(stage: Stage, answer: Answer) -> None:
    assert {one["account_sid"] for one in answer.body["messages"]} <= {stage.accounts["other"].account_sid}


async def _is_nobody_elses(stage: Stage, answer: Answer) -> None:
    assert answer.body["account_sid"] == stage.accounts["other"].account_sid
    assert (
        await stage.ask("GET", _ONE.format(sid=stage.own.account_sid, messageSid=answer.body["sid"]))
    ).status == 404


_BODY = {"To": _TO, "From": _channel(), "Body": "Your parcel is here."}
CASES: tuple[Case, ...] = (
    *row(
        f"POST {_ALL}",
        ok(201, body=_BODY, then=_is_read_in_the_end),
        ok(
            201,
            name="a picture",
            body={
                **_BODY,
                "To": f"whatsapp:{_TO}",
                "Body": "Our shop.",
                "MediaUrl": "https://example.com/shop.png",
            },
            then=_is_a_picture,
        ),
        ok(
            201,
            name="that the network refuses",
            body={**_BODY, "To": _REFUSED},
            then=_has_failed,
        ),
        unseen(201, body={**_BODY, "From": _channel("other")}, then=_is_nobody_elses),
        foreign(403, "20403", path={"sid": account_sid("own")}, body=_BODY),
        refused(400, "21212", body={**_BODY, "From": _TO}, fields=("From",)),
        refused(400, "20001", name="nothing to say", body={"To": _TO, "From": _TO}, fields=("Body",)),
        refused(
            400,
            "20001",
            name="no counterpart",
            body={**_BODY, "StatusCallback": "https://a.example/", "To": "x"},
            fields=("StatusCallback", "To"),
        ),
        refused(400, "21610", name="has opted out", body={**_BODY, "To": opted_out}, fields=("To",)),
        refused(
            400,
            "21620",
            name="no file",
            body={**_BODY, "MediaUrl": "ftp://a.example/b"},
            fields=("MediaUrl",),
        ),
        refused(400, "20001", name="no channel", body=_BODY, during=disconnected_channel),
    ),
    *row(
        f"GET {_ALL}",
        ok(query={"To": _two_messages, "PageSize": "1"}, then=_leads_to_the_next),
        unseen(before=(_message,), then=_are_their_own),
        foreign(403, "20403", path={"sid": account_sid("own")}),
        refused(400, "21211", query={"To": "garbage"}, fields=("To",)),
        refused(
            400, "20001", name="no counterpart", query={"DateSent>": "2026-01-01"}, fields=("DateSent>",)
        ),
    ),
    *row(
        f"GET {_ONE}",
        ok(path={"messageSid": _message}),
        foreign(404, "20404", path={"messageSid": _message}),
        refused(404, "20404", path={"messageSid": NOWHERE}),
    ),
)
