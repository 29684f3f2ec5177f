"""Messages over the messaging network, and what comes in from it."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.contract.cases import foreign, ok, refused, row, unseen
from tests.contract.givens import NOWHERE, disconnected_channel
from tests.contract.stage import Answer, Stage
from tests.support.waiting import PATIENCE_S, look_again

_MESSAGES = "/api/v1/messages"
_TO = "+919800100000"
_REFUSED, _UNREACHABLE, _OPTED_OUT = "+919800100104", "+919800100106", "+919800100155"
_BODY = {"to": _TO, "type": "text", "text": "Your parcel is here."}
_BUTTONS = {
    "body": "Shall we come at nine?",
    "header": "Delivery",
    "footer": "Reply within the hour",
    "buttons": [{"id": "yes", "title": "Yes, please"}, {"id": "no", "title": "No"}],
}
_ROWS = {
    "body": "When?",
    "buttons": [{"id": str(n), "title": f"At {n}", "description": "sharp"} for n in range(10)],
}
_MEDIA = {"type": "video", "url": "http://example.com/clip.mp4", "filename": "clip.mp4"}


async def message(stage: Stage) -> str:
    """The id of a message of the account."""
    return str((await stage.ask("POST", _MESSAGES, body=_BODY)).body["messageId"])


async def opted_out(stage: Stage) -> str:
    """The number of somebody who has asked for no more messages."""
    await stage.data("POST", "/api/v1/sandbox/inbound", body={"from": _OPTED_OUT, "text": " Stop. "})
    return _OPTED_OUT


async def _is_read_in_the_end(stage: Stage, answer: Answer) -> None:
    assert set(answer.body) == {"success", "messageId", "to", "type", "timestamp"} and answer.body["success"]
    async with asyncio.timeout(PATIENCE_S):
        while (found := await _shown(stage, answer))["status"] != "read":
            assert found["status"] in ("queued", "sent", "delivered"), found
            await look_again()
    assert found["sentAt"] <= found["deliveredAt"] <= found["readAt"]


async def _shown(stage: Stage, answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = await stage.data("GET", f"{_MESSAGES}/{answer.body['messageId']}")
    return found


async def _is_kept_as_failed(stage: Stage, answer: Answer) -> None:
    details = answer.body["details"]
    found = await stage.data("GET", f"{_MESSAGES}/{details['messageId']}")
    assert (found["status"], found["error"]["code"]) == ("failed", details["reason"])


async def _is_kept_as_it_was_sent(stage: Stage, answer: Answer) -> None:
    found = await _shown(stage, answer)
    assert found["media"] in (_MEDIA, None) and found["interactive"] in (_BUTTONS, _ROWS, None)
    assert [found[part] for part in ("text", "template", "media", "interactive")].count(None) == 3


async def _is_one_of_several(_: Stage, answer: Answer) -> None:
    assert answer.body["pagination"]["total"] >= len(answer.data) >= 1
    assert answer.body["pagination"]["pageSize"] == 50


async def _is_inbound(_: Stage, answer: Answer) -> None:
    assert {one["direction"] for one in answer.data} == {"inbound"}


async def _came_in(stage: Stage, answer: Answer) -> None:
    assert (answer.data["status"], answer.data["text"]) == ("received", "Which floor?")
    found = await stage.data("GET", _MESSAGES, query={"direction": "inbound", "from": _TO})
    assert answer.data["messageId"] in [one["messageId"] for one in found]


async def _opts_in_again(stage: Stage, answer: Answer) -> None:
    assert answer.data["text"] == "START"
    sent = await stage.ask("POST", _MESSAGES, body={**_BODY, "to": _OPTED_OUT})
    assert sent.status == 200, sent


async def _is_nobody_elses(stage: Stage, answer: Answer) -> None:
    message_id = answer.body.get("messageId") or answer.data["messageId"]
    refusal = await stage.ask("GET", f"{_MESSAGES}/{message_id}")
    assert (refusal.status, refusal.code) == (404, "NOT_FOUND")


async def _nothing(_: Stage, answer: Answer) -> None:
    assert (answer.data, answer.body["pagination"]["total"]) == ([], 0)


CASES = (
    *row(
        f"POST {_MESSAGES}",
        ok(body=_BODY, then=_is_read_in_the_end),
        ok(body={"to": "+91 98001-00000", "type": "media", "media": _MEDIA}, then=_is_kept_as_it_was_sent),
        ok(body={"to": _TO, "type": "buttons", "interactive": _BUTTONS}, then=_is_kept_as_it_was_sent),
        ok(body={"to": _TO, "type": "list", "interactive": _ROWS}, then=_is_kept_as_it_was_sent),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"to": 7, "type": "fax", "colour": "red"},
            fields=("to", "type", "colour"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a part that is of another type, and none of its own",
            body={"to": "12345", "type": "text", "media": _MEDIA},
            fields=("to", "text", "media"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="buttons that the network does not take",
            body={
                "to": _TO,
                "type": "buttons",
                "interactive": {
                    "body": "x" * 1025,
                    "buttons": [{"id": "1", "title": "a" * 21}, {"id": "1", "title": "b"}],
                },
            },
            fields=("interactive.body",),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a title that is too long for a button, and an id twice",
            body={
                "to": _TO,
                "type": "buttons",
                "interactive": {
                    "body": "x",
                    "buttons": [{"id": "1", "title": "a" * 21}, {"id": "1", "title": "b"}],
                },
            },
            fields=("interactive.buttons[0].title", "interactive.buttons[1].id"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="media where nobody may look",
            body={
                "to": _TO,
                "type": "media",
                "media": {"type": "audio", "url": "http://169.254.169.254/", "caption": ""},
            },
            fields=("media.url", "media.caption"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a template that is not approved",
            body={"to": _TO, "type": "template", "template": {"name": "no_such_template"}},
            fields=("template.name",),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="somebody who has opted out",
            body={**_BODY, "to": opted_out},
            fields=("to",),
        ),
        refused(502, "SEND_FAILED", body={**_BODY, "to": _REFUSED}, then=_is_kept_as_failed),
        refused(
            502,
            "SEND_FAILED",
            name="a network that is not there",
            body={**_BODY, "to": _UNREACHABLE},
            then=_is_kept_as_failed,
        ),
        refused(400, "CHANNEL_NOT_CONFIGURED", body=_BODY, during=disconnected_channel),
        unseen(200, body=_BODY, then=_is_nobody_elses),
    ),
    *row(
        f"GET {_MESSAGES}",
        ok(before=(message,), then=_is_one_of_several),
        ok(before=(opted_out,), query={"direction": "inbound"}, then=_is_inbound),
        refused(
            400,
            "VALIDATION_ERROR",
            query={"status": "lost", "from": "garbage", "pageSize": "101"},
            fields=("status", "from", "pageSize"),
        ),
        unseen(by="poor", before=(message,), then=_nothing),
    ),
    *row(
        f"GET {_MESSAGES}/{{messageId}}",
        ok(path={"messageId": message}),
        foreign(404, "NOT_FOUND", path={"messageId": message}),
        refused(404, "NOT_FOUND", path={"messageId": NOWHERE}),
    ),
    *row(
        "POST /api/v1/sandbox/inbound",
        ok(201, body={"from": _TO, "text": "Which floor?"}, then=_came_in),
        ok(201, before=(opted_out,), body={"from": _OPTED_OUT, "text": "START"}, then=_opts_in_again),
        refused(400, "VALIDATION_ERROR", body={"from": "x", "text": ""}, fields=("text", "from")),
        refused(400, "VALIDATION_ERROR", name="no number", body={"from": "x", "text": "y"}, fields=("from",)),
        unseen(201, body={"from": _TO, "text": "Hello"}, then=_is_nobody_elses),
    ),
)
