"""The voice assistant: its webhooks and its keys."""

from __future__ import annotations

from typing import Any

from callcontrol.aio import assistant_keys, subscriptions
from tests.contract.cases import Given, foreign, ok, refused, row, unseen
from tests.contract.givens import NOWHERE, limited, parts
from tests.contract.stage import Answer, Stage
from tests.support.webhook_stage import statuses, until

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
    webhook_id = await webhook()(stage)
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
    found: list[dict[str, Any]] = []

    async def failed() -> bool:
        found[:] = [item for item in await stage.data("GET", log) if item["status"] == "failed"]
        return bool(found)

    await _until(failed)
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
    key_id = await key()(stage)
    await stage.data("POST", f"{_KEYS}/{key_id}/rotate", body={})
    return key_id
