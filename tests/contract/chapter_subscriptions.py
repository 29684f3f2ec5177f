"""The webhook subscriptions chapter; its refusals are plain texts."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from standardwebhooks import Webhook

from callcontrol.webhooks.aio import subscriptions
from tests.contract.cases import foreign, ok, refused, row, unseen
from tests.contract.givens import (
    NOWHERE,
    SUBSCRIPTIONS,
    delivered,
    limited,
    not_delivered,
    parts,
    subscribe,
    subscription,
)
from tests.contract.stage import Answer, Stage
from tests.support.waiting import until
from tests.support.webhook_stage import statuses

_ONE = f"{SUBSCRIPTIONS}/{{id}}"
_LOG = f"{_ONE}/deliveries"
_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


async def _url(stage: Stage) -> str:
    return stage.receiver.url("/tested")


async def _is_made(_: Stage, answer: Answer) -> None:
    made = answer.data
    assert made["has_secret"] and made["is_active"] and made["event_types"] == ["call.missed"]
    assert _SECRET.encode() not in answer.raw and "secret" not in made


async def _is_its_own(stage: Stage, answer: Answer) -> None:
    """Subscriptions of another account are not listed among the account's own."""
    assert answer.data["has_secret"] is False
    listed = await stage.data("GET", SUBSCRIPTIONS)
    assert answer.data["id"] not in [item["id"] for item in listed]


async def _is_listed(stage: Stage, answer: Answer) -> None:
    assert answer.data and all("secret" not in item for item in answer.data)


async def _lists_none(_: Stage, answer: Answer) -> None:
    assert answer.data == []


async def _is_paused(_: Stage, answer: Answer) -> None:
    assert (answer.data["is_active"], answer.data["has_secret"]) == (False, True)


async def _is_gone(stage: Stage, answer: Answer) -> None:
    assert answer.raw == b""


async def _arrived(stage: Stage, answer: Answer) -> None:
    """The event came, signed in both ways."""
    assert answer.data["success"] is True and answer.data["status_code"] == 204
    got = [item for item in stage.receiver.requests if item.path == "/taken"][-1]
    body = json.loads(got.body)
    assert body["event"] == "webhook.test" and body["id"] == got.delivery_id
    expected = hmac.new(b"a long secret", got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Service-Signature"] == f"sha256={expected}"
    Webhook(b"a long secret").verify(got.body, got.headers)


async def _was_refused(_: Stage, answer: Answer) -> None:
    assert (answer.data["success"], answer.data["status_code"]) == (False, 500) and answer.data["error"]


async def _reached_nobody(_: Stage, answer: Answer) -> None:
    assert (answer.data["success"], answer.data["status_code"]) == (False, 0) and answer.data["error"]


async def _refusing(stage: Stage) -> str:
    stage.receiver.answers["/refusing"] = statuses(500)
    return await subscribe(stage, "/refusing")


async def _paused(stage: Stage) -> str:
    subscription_id = await subscribe(stage, "/taken")
    await stage.data("PATCH", f"{SUBSCRIPTIONS}/{subscription_id}", body={"is_active": False})
    return subscription_id


async def _nowhere(stage: Stage) -> str:
    body = {"url": "http://127.0.0.1:9/", "event_types": ["call.missed"]}
    return str((await stage.data("POST", SUBSCRIPTIONS, body=body))["id"])


async def _shows_the_delivery(stage: Stage, answer: Answer) -> None:
    (shown,) = answer.data
    assert (shown["status"], shown["attempts"], shown["max_attempts"]) == ("delivered", 1, 8)
    assert (shown["event_type"], shown["response_code"]) == ("call.missed", 204) and shown["call_sid"]
    got = [item for item in stage.receiver.requests if item.delivery_id == shown["id"]]
    assert len(got) == 1 and json.loads(got[0].body)["data"]["reason"] == "busy"


async def _comes_again(stage: Stage, answer: Answer) -> None:
    """It is sent again under the same id."""
    assert answer.data["replayed"] == 1
    delivery_id = stage.kept["not delivered"]
    await until(lambda: stage.receiver.ids("/gone").count(delivery_id) == 2)


async def _all_come_again(_: Stage, answer: Answer) -> None:
    assert answer.data == {"replayed": 1, "truncated": False}


def _with(**changes: Any) -> dict[str, Any]:
    return {"url": _url, "event_types": ["call.missed"], **changes}


CASES = (
    *row(
        f"GET {SUBSCRIPTIONS}",
        ok(before=(subscription(),), then=_is_listed),
        unseen(before=(subscription(),), by="buyer", then=_lists_none),
    ),
    *row(
        f"POST {SUBSCRIPTIONS}",
        ok(201, body=_with(secret=_SECRET), then=_is_made),
        refused(400, None, name="no URL of the web", body=_with(url="ftp://a.example/"), fields=("url",)),
        refused(400, None, name="another scheme", body=_with(url="javascript:alert(1)"), fields=("url",)),
        refused(
            400, None, name="no such event", body=_with(event_types=["call.lost"]), fields=("event_types",)
        ),
        refused(400, None, name="no event", body=_with(event_types=[]), fields=("event_types",)),
        refused(
            400,
            None,
            name="nothing right",
            body={"secret": 7, "colour": 1},
            fields=("url", "event_types", "secret", "colour"),
        ),
        refused(409, None, body=_with(), during=limited(subscriptions, "_MAX_SUBSCRIPTIONS")),
        unseen(201, body=_with(), by="other", then=_is_its_own),
    ),
    *row(
        f"PATCH {_ONE}",
        ok(path={"id": subscription()}, body={"is_active": False}, then=_is_paused),
        refused(
            400,
            None,
            path={"id": subscription()},
            body={"event_types": 1, "colour": 1},
            fields=("event_types", "colour"),
        ),
        refused(404, None, path={"id": NOWHERE}, body={"is_active": False}),
        foreign(404, None, path={"id": subscription()}, body={"is_active": False}),
    ),
    *row(
        f"DELETE {_ONE}",
        ok(204, path={"id": subscription()}, then=_is_gone),
        refused(404, None, path={"id": NOWHERE}),
        foreign(404, None, path={"id": subscription()}),
    ),
    *row(
        f"POST {_ONE}/test",
        ok(path={"id": subscription()}, then=_arrived),
        ok(name="of a receiver that fails", path={"id": _refusing}, then=_was_refused),
        ok(name="where nobody listens", path={"id": _nowhere}, then=_reached_nobody),
        refused(404, None, path={"id": NOWHERE}),
        foreign(404, None, path={"id": subscription()}),
    ),
    *row(
        f"GET {_LOG}",
        ok(path=parts(delivered, "id"), then=_shows_the_delivery),
        refused(
            400, None, name="too many", path={"id": subscription()}, query={"limit": "201"}, fields=("limit",)
        ),
        refused(400, None, name="none", path={"id": subscription()}, query={"limit": "0"}, fields=("limit",)),
        refused(404, None, path={"id": NOWHERE}),
        foreign(404, None, path={"id": subscription()}),
    ),
    *row(
        f"POST {_LOG}/{{delivery_id}}/replay",
        ok(path=parts(not_delivered, "id", "delivery_id"), then=_comes_again),
        refused(404, None, path={"id": NOWHERE, "delivery_id": NOWHERE}),
        refused(404, None, name="no such delivery", path={"id": subscription(), "delivery_id": NOWHERE}),
        refused(409, None, path={"id": _paused, "delivery_id": NOWHERE}),
        foreign(404, None, path=parts(not_delivered, "id", "delivery_id")),
    ),
    *row(
        f"POST {_LOG}/replay",
        ok(path=parts(not_delivered, "id"), body={"status": "failed"}, then=_all_come_again),
        refused(
            400,
            None,
            path={"id": subscription()},
            body={"status": "delivered", "colour": 1},
            fields=("status", "colour"),
        ),
        refused(
            400,
            None,
            name="no moment",
            path={"id": subscription()},
            body={"status": "failed", "since": "yesterday"},
            fields=("since",),
        ),
        refused(409, None, path={"id": _paused}, body={"status": "failed"}),
        refused(404, None, path={"id": NOWHERE}, body={"status": "failed"}),
        foreign(404, None, path={"id": subscription()}, body={"status": "failed"}),
    ),
)
