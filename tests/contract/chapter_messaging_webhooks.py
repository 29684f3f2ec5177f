"""The webhook endpoints of messaging."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import uuid
from dataclasses import replace
from typing import Any

from sqlalchemy.engine import Connection
from standardwebhooks import Webhook

from callcontrol.aio.tokens import utc_now
from callcontrol.messaging.events import message_status_event
from callcontrol.webhooks.aio import subscriptions
from callcontrol.webhooks.store import publish as fan_out
from tests.contract.cases import Given, foreign, ok, refused, row, unseen
from tests.contract.givens import NOWHERE, limited, parts
from tests.contract.stage import Answer, Stage
from tests.support.messaging import queued
from tests.support.waiting import PATIENCE_S, look_again, until
from tests.support.webhook_stage import statuses

_ALL = "/api/webhook-endpoints"
_ONE = f"{_ALL}/{{id}}"
_LOG = f"{_ONE}/deliveries"
_EVENTS = ["message.sent", "message.failed"]
_PATH, _GONE = "/messaging", "/messaging-gone"
_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
_NOTHING = str(2**40)
"""A number that no endpoint has."""
_FAILED = {"status": "failed"}


async def _url(stage: Stage) -> str:
    return stage.receiver.url(_PATH)


async def register(stage: Stage, path: str = _PATH, by: str = "own", **more: Any) -> str:
    """Register a path of the stage's receiver; the number of the endpoint."""
    body = {"url": stage.receiver.url(path), "events": _EVENTS, **more}
    return str((await stage.data("POST", _ALL, by=by, body=body))["id"])


def endpoint(path: str = _PATH, by: str = "own", **more: Any) -> Given:
    """The number of an endpoint of an account."""

    async def given(stage: Stage) -> str:
        return await register(stage, path, by, **more)

    return given


async def paused(stage: Stage) -> str:
    """The number of an endpoint that is paused."""
    number = await register(stage)
    await stage.data("PATCH", f"{_ALL}/{number}", body={"isActive": False})
    return number


async def tell(stage: Stage, status: Any = "sent") -> str:
    """Move a message of the account to a state; returns its id."""
    # By the clock that deliveries go by: a busy machine leaves virtual time behind the time of day.
    now, message_id = utc_now(), str(uuid.uuid4())
    event = message_status_event(
        replace(queued(stage.own.account_sid), message_id=message_id, status=status, created_at=now),
        now,
    )
    assert event is not None

    def write(connection: Connection) -> int:
        return fan_out.publish(connection, [event])

    await stage.server.storage.writer.commit(write)
    stage.server.storage.outbox.changed()
    return message_id


async def endpoint_not_delivered(stage: Stage) -> dict[str, str]:
    """An endpoint whose receiver was gone, and the delivery that failed; both are there again."""
    stage.receiver.answers[_GONE] = statuses(410)
    number = await register(stage, _GONE)
    message_id = await tell(stage)
    log = f"{_ALL}/{number}/deliveries"
    found: list[dict[str, Any]] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (failed := [item for item in found if item["status"] == "failed"]):
                await look_again()
                found = await stage.data("GET", log)
    except TimeoutError:
        raise AssertionError(f"no delivery has failed: {found}") from None
    stage.receiver.answers[_GONE] = statuses(204)
    await stage.data("PATCH", f"{_ALL}/{number}", body={"isActive": True})
    stage.kept["endpoint not delivered"] = {"delivery": failed[0]["id"], "message": message_id}
    return {"id": number, "delivery_id": failed[0]["id"]}


async def _implicit_key(stage: Stage) -> str:
    """A messaging key with all that is given without being named."""
    _, key = await stage.server.storage.keys.issue(stage.own.account_sid, "messaging")
    return f"Bearer {key}"


async def _shows_its_secret(stage: Stage, answer: Answer) -> None:
    made = answer.data
    assert made["secret"].startswith("whsec_") and made["isActive"] and made["events"] == _EVENTS
    shown = await stage.data("GET", f"{_ALL}/{made['id']}")
    assert "secret" not in shown and shown == {name: made[name] for name in shown}


async def _is_its_own(stage: Stage, answer: Answer) -> None:
    listed = await stage.data("GET", _ALL)
    assert answer.data["id"] not in [item["id"] for item in listed]


async def _shows_no_secret(_: Stage, answer: Answer) -> None:
    assert answer.data and all("secret" not in item for item in answer.data)


async def _shows_none(_: Stage, answer: Answer) -> None:
    assert answer.data == []


async def _is_paused(_: Stage, answer: Answer) -> None:
    assert (answer.data["isActive"], answer.data["events"]) == (False, ["message.read"])


async def _is_gone(stage: Stage, answer: Answer) -> None:
    number = answer.data["id"]
    assert (await stage.ask("GET", f"{_ALL}/{number}")).status == 404
    listed = await stage.data("GET", _ALL)
    assert number not in [item["id"] for item in listed]


async def _arrived(stage: Stage, answer: Answer) -> None:
    """The event came, signed in both ways, as libraries check it."""
    assert answer.data == {"success": True, "statusCode": 204, "error": ""}
    got = [item for item in stage.receiver.requests if item.path == _PATH][-1]
    body = json.loads(got.body)
    assert body["event"] == "webhook.test" and body["createdAt"] and body["id"] == got.delivery_id
    expected = hmac.new(_SECRET.encode(), got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Service-Signature"] == f"sha256={expected}"
    Webhook(_SECRET).verify(got.body, got.headers)


async def _was_refused(_: Stage, answer: Answer) -> None:
    assert (answer.data["success"], answer.data["statusCode"]) == (False, 500) and answer.data["error"]


async def _refusing(stage: Stage) -> str:
    stage.receiver.answers["/messaging-refusing"] = statuses(500)
    return await register(stage, "/messaging-refusing")


async def _was_sent(stage: Stage, answer: Answer) -> None:
    (shown,) = answer.data
    kept = stage.kept["endpoint not delivered"]
    assert (shown["id"], shown["messageId"]) == (kept["delivery"], kept["message"])
    assert (shown["event"], shown["responseCode"], shown["attempts"]) == ("message.sent", 410, 1)


async def _comes_again(stage: Stage, answer: Answer) -> None:
    """It is sent again under the same id."""
    assert answer.data["replayed"] == 1
    delivery_id = stage.kept["endpoint not delivered"]["delivery"]
    await until(lambda: stage.receiver.ids(_GONE).count(delivery_id) == 2)


CASES = (
    *row(
        f"POST {_ALL}",
        ok(201, body={"url": _url, "events": _EVENTS}, then=_shows_its_secret),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"url": 7, "events": ["call.missed"], "colour": "red"},
            fields=("url", "events[0]", "colour"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a secret that nobody can sign with",
            body={"url": _url, "events": _EVENTS, "secret": "short"},
            fields=("secret",),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="no URL of the web",
            body={"url": "ftp://a.example/", "events": _EVENTS},
            fields=("url",),
        ),
        refused(
            403,
            "FORBIDDEN",
            name="a scope that was not named when the key was made",
            headers={"Authorization": _implicit_key},
            body={"url": _url, "events": _EVENTS},
        ),
        refused(
            409,
            "CONFLICT",
            body={"url": _url, "events": _EVENTS},
            during=limited(subscriptions, "_MAX_ENDPOINTS"),
        ),
        unseen(201, body={"url": _url, "events": _EVENTS}, then=_is_its_own),
    ),
    *row(
        f"GET {_ALL}",
        ok(before=(endpoint(),), then=_shows_no_secret),
        refused(403, "FORBIDDEN", headers={"Authorization": _implicit_key}),
        unseen(by="buyer", before=(endpoint(),), then=_shows_none),
    ),
    *row(
        f"GET {_ONE}",
        ok(path={"id": endpoint()}),
        refused(404, "NOT_FOUND", path={"id": _NOTHING}),
        refused(404, "NOT_FOUND", name="no number", path={"id": "first"}),
        foreign(404, "NOT_FOUND", path={"id": endpoint()}),
    ),
    *row(
        f"PATCH {_ONE}",
        ok(path={"id": endpoint()}, body={"isActive": False, "events": ["message.read"]}, then=_is_paused),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"id": endpoint()},
            body={"events": [], "secret": None, "colour": "red"},
            fields=("events", "secret", "colour"),
        ),
        refused(404, "NOT_FOUND", path={"id": _NOTHING}, body={"isActive": False}),
        foreign(404, "NOT_FOUND", path={"id": endpoint()}, body={"isActive": False}),
    ),
    *row(
        f"DELETE {_ONE}",
        ok(path={"id": endpoint()}, then=_is_gone),
        refused(404, "NOT_FOUND", path={"id": _NOTHING}),
        foreign(404, "NOT_FOUND", path={"id": endpoint()}),
    ),
    *row(
        f"POST {_ONE}/test",
        ok(path={"id": endpoint(secret=_SECRET)}, then=_arrived),
        ok(name="of a receiver that fails", path={"id": _refusing}, then=_was_refused),
        refused(404, "NOT_FOUND", path={"id": _NOTHING}),
        foreign(404, "NOT_FOUND", path={"id": endpoint()}),
    ),
    *row(
        f"GET {_LOG}",
        ok(path=parts(endpoint_not_delivered, "id"), then=_was_sent),
        refused(400, "VALIDATION_ERROR", path={"id": endpoint()}, query={"limit": "0"}, fields=("limit",)),
        refused(404, "NOT_FOUND", path={"id": _NOTHING}),
        foreign(404, "NOT_FOUND", path={"id": endpoint()}),
    ),
    *row(
        f"POST {_LOG}/{{delivery_id}}/replay",
        ok(path=parts(endpoint_not_delivered, "id", "delivery_id"), then=_comes_again),
        refused(404, "NOT_FOUND", path={"id": endpoint(), "delivery_id": NOWHERE}),
        refused(404, "NOT_FOUND", name="no id", path={"id": endpoint(), "delivery_id": "7"}),
        refused(409, "CONFLICT", path={"id": paused, "delivery_id": NOWHERE}),
        foreign(404, "NOT_FOUND", path=parts(endpoint_not_delivered, "id", "delivery_id")),
    ),
    *row(
        f"POST {_LOG}/replay",
        ok(path=parts(endpoint_not_delivered, "id"), body=_FAILED, then=_comes_again),
        refused(
            400, "VALIDATION_ERROR", path={"id": endpoint()}, body={"status": "delivered"}, fields=("status",)
        ),
        refused(409, "CONFLICT", path={"id": paused}, body=_FAILED),
        foreign(404, "NOT_FOUND", path={"id": endpoint()}, body=_FAILED),
    ),
)
