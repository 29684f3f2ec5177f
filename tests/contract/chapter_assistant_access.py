"""The voice assistant: its webhooks and its keys."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from callcontrol.assistant.aio import keys as assistant_keys
from callcontrol.webhooks.aio import subscriptions
from tests.contract.cases import Given, foreign, ok, refused, row, unseen
from tests.contract.givens import NOWHERE, limited, parts
from tests.contract.stage import Answer, Stage
from tests.support.waiting import PATIENCE_S, look_again
from tests.support.webhook_stage import statuses

_WEBHOOKS = "/api/v1/webhooks"
_ONE = f"{_WEBHOOKS}/{{webhook_id}}"
_LOG = f"{_ONE}/deliveries"
_KEYS = "/api/v1/keys"
_EVENTS = ["agent.updated", "call.completed"]


async def _url(stage: Stage) -> str:
    return stage.receiver.url("/assistant")


def webhook(path: str = "/assistant", by: str = "own") -> Given:
    """The id of a webhook of an account."""

    async def given(stage: Stage) -> str:
        body = {"url": stage.receiver.url(path), "events": _EVENTS}
        return str((await stage.data("POST", _WEBHOOKS, by=by, body=body))["id"])

    return given


async def paused(stage: Stage) -> str:
    """The id of a webhook that is paused."""
    webhook_id = str(await webhook()(stage))
    await stage.data("PATCH", f"{_WEBHOOKS}/{webhook_id}", body={"is_active": False})
    return webhook_id


async def not_delivered(stage: Stage) -> dict[str, str]:
    """A webhook whose receiver was gone, and the delivery that failed; both are active again."""
    path = "/assistant-gone"
    stage.receiver.answers[path] = statuses(410)
    webhook_id = await webhook(path)(stage)
    agent = await stage.data("POST", "/api/v1/agents", body={"name": "Changed"})
    await stage.data("PATCH", f"/api/v1/agents/{agent['id']}", body={"voice": "calm"})
    log = f"{_WEBHOOKS}/{webhook_id}/deliveries"
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = [item for item in await stage.data("GET", log) if item["status"] == "failed"]
            if found:
                break
            await look_again()
    stage.receiver.answers[path] = statuses(204)
    await stage.data("PATCH", f"{_WEBHOOKS}/{webhook_id}", body={"is_active": True})
    return {"webhook_id": webhook_id, "delivery_id": found[0]["id"]}


def key(by: str = "own", **body: Any) -> Given:
    """The id of a key of an account."""

    async def given(stage: Stage) -> str:
        return str((await stage.data("POST", _KEYS, by=by, body={"name": "CI", **body}))["id"])

    return given


async def rotated(stage: Stage) -> str:
    """The id of a key that has a successor."""
    key_id = str(await key()(stage))
    await stage.data("POST", f"{_KEYS}/{key_id}/rotate", body={})
    return key_id


async def _shows_its_secret(stage: Stage, answer: Answer) -> None:
    made = answer.data
    assert made["secret"].startswith("whsec_") and made["is_active"] and made["events"] == _EVENTS
    shown = await stage.data("GET", f"{_WEBHOOKS}/{made['id']}")
    assert "secret" not in shown


async def _is_its_own(stage: Stage, answer: Answer) -> None:
    listed = await stage.data("GET", _WEBHOOKS)
    assert answer.data["id"] not in [item["id"] for item in listed]


async def _shows_no_secret(_: Stage, answer: Answer) -> None:
    assert answer.data and all("secret" not in item for item in answer.data)


async def _shows_none(_: Stage, answer: Answer) -> None:
    assert answer.data == []


async def _is_paused(_: Stage, answer: Answer) -> None:
    assert answer.data["is_active"] is False and answer.data["events"] == ["call.started"]


async def _arrived(stage: Stage, answer: Answer) -> None:
    assert answer.data["success"] is True
    got = [item for item in stage.receiver.requests if item.path == "/assistant"][-1]
    body = json.loads(got.body)
    assert body["event"] == "webhook.test" and body["timestamp"]
    assert got.headers["X-Service-Signature"].startswith("sha256=")


async def _comes_again(stage: Stage, answer: Answer) -> None:
    assert answer.data["replayed"] == 1


async def _was_updated(stage: Stage, answer: Answer) -> None:
    assert [item["event_type"] for item in answer.data] == ["agent.updated"]


async def _opens(stage: Stage, answer: Answer) -> None:
    """The key works, and carries nothing more than it was given."""
    made = answer.data
    assert (made["environment"], made["scopes"], made["state"]) == ("sandbox", ["assistant"], "active")
    assert (await stage.ask("GET", "/api/v1/agents", key=made["key"])).status == 200
    assert (await stage.ask("GET", _KEYS, key=made["key"])).status == 403


async def _is_confined(stage: Stage, answer: Answer) -> None:
    """Keys of another account are not listed among the account's own."""
    listed = await stage.data("GET", _KEYS)
    assert answer.data["id"] not in [item["id"] for item in listed]


async def _keeps_keys_to_itself(_: Stage, answer: Answer) -> None:
    assert answer.data and all("key" not in item for item in answer.data)


async def _sees_its_own(stage: Stage, answer: Answer) -> None:
    own = {item["id"] for item in await stage.data("GET", _KEYS)}
    assert own.isdisjoint(item["id"] for item in answer.data)


async def _both_are_valid(_: Stage, answer: Answer) -> None:
    assert answer.data["replaces"]["state"] == "retiring" and answer.data["replaces"]["expires_at"]
    assert answer.data["name"] == "CI"


_FAILED = {"status": "failed"}

CASES = (
    *row(
        f"POST {_WEBHOOKS}",
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
            409,
            "CONFLICT",
            body={"url": _url, "events": _EVENTS},
            during=limited(subscriptions, "_MAX_SUBSCRIPTIONS"),
        ),
        unseen(201, body={"url": _url, "events": _EVENTS}, then=_is_its_own),
    ),
    *row(
        f"GET {_WEBHOOKS}",
        ok(before=(webhook(),), then=_shows_no_secret),
        unseen(by="buyer", before=(webhook(),), then=_shows_none),
    ),
    *row(
        f"GET {_ONE}",
        ok(path={"webhook_id": webhook()}),
        foreign(404, "NOT_FOUND", path={"webhook_id": webhook()}),
        refused(404, "NOT_FOUND", path={"webhook_id": NOWHERE}),
    ),
    *row(
        f"PATCH {_ONE}",
        ok(
            path={"webhook_id": webhook()},
            body={"is_active": False, "events": ["call.started"]},
            then=_is_paused,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"webhook_id": webhook()},
            body={"events": [], "colour": "red"},
            fields=("events", "colour"),
        ),
        foreign(404, "NOT_FOUND", path={"webhook_id": webhook()}, body={"is_active": False}),
        refused(404, "NOT_FOUND", path={"webhook_id": NOWHERE}, body={"is_active": False}),
    ),
    *row(
        f"DELETE {_ONE}",
        ok(204, path={"webhook_id": webhook()}),
        foreign(404, "NOT_FOUND", path={"webhook_id": webhook()}),
        refused(404, "NOT_FOUND", path={"webhook_id": NOWHERE}),
    ),
    *row(
        f"POST {_ONE}/test",
        ok(path={"webhook_id": webhook()}, then=_arrived),
        foreign(404, "NOT_FOUND", path={"webhook_id": webhook()}),
        refused(404, "NOT_FOUND", path={"webhook_id": NOWHERE}),
    ),
    *row(
        f"GET {_LOG}",
        ok(path=parts(not_delivered, "webhook_id"), then=_was_updated),
        foreign(404, "NOT_FOUND", path={"webhook_id": webhook()}),
        refused(
            400, "VALIDATION_ERROR", path={"webhook_id": NOWHERE}, query={"limit": "0"}, fields=("limit",)
        ),
    ),
    *row(
        f"POST {_LOG}/{{delivery_id}}/replay",
        ok(path=parts(not_delivered, "webhook_id", "delivery_id"), then=_comes_again),
        refused(404, "NOT_FOUND", path={"webhook_id": NOWHERE, "delivery_id": NOWHERE}),
        refused(409, "CONFLICT", path={"webhook_id": paused, "delivery_id": NOWHERE}),
        foreign(404, "NOT_FOUND", path=parts(not_delivered, "webhook_id", "delivery_id")),
    ),
    *row(
        f"POST {_LOG}/replay",
        ok(path=parts(not_delivered, "webhook_id"), body=_FAILED, then=_comes_again),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"webhook_id": webhook()},
            body={"status": "delivered"},
            fields=("status",),
        ),
        refused(409, "CONFLICT", path={"webhook_id": paused}, body=_FAILED),
        foreign(404, "NOT_FOUND", path={"webhook_id": webhook()}, body=_FAILED),
    ),
    *row(
        f"POST {_KEYS}",
        ok(201, body={"name": "staging", "environment": "sandbox"}, then=_opens),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"name": "", "environment": "moon", "scopes": ["calls.write"]},
            fields=("name", "environment", "scopes[0]"),
        ),
        refused(409, "CONFLICT", body={"name": "one more"}, during=limited(assistant_keys, "_MAX_KEYS")),
        unseen(201, body={"name": "theirs"}, then=_is_confined),
    ),
    *row(
        f"GET {_KEYS}",
        ok(before=(key(),), then=_keeps_keys_to_itself),
        unseen(before=(key(),), then=_sees_its_own),
    ),
    *row(
        f"POST {_KEYS}/{{key_id}}/rotate",
        ok(201, path={"key_id": key()}, body={"overlap_seconds": 60}, then=_both_are_valid),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"key_id": key()},
            body={"overlap_seconds": -1},
            fields=("overlap_seconds",),
        ),
        foreign(404, "NOT_FOUND", path={"key_id": key()}, body={}),
        refused(404, "NOT_FOUND", path={"key_id": NOWHERE}, body={}),
        refused(409, "CONFLICT", path={"key_id": rotated}, body={}),
    ),
    *row(
        f"DELETE {_KEYS}/{{key_id}}",
        ok(204, path={"key_id": key()}),
        foreign(404, "NOT_FOUND", path={"key_id": key()}),
        refused(404, "NOT_FOUND", path={"key_id": NOWHERE}),
    ),
)
