"""The account of a key, keys of all services, and the webhook secret, which the specification leaves open."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import uuid
from typing import Any

from callcontrol.accounts.aio import managed_keys
from callcontrol.accounts.keys import SCOPES
from callcontrol.models import Service
from tests.contract.cases import Given, foreign, ok, refused, row, unseen
from tests.contract.givens import BUSY, NOWHERE, caller_id, limited
from tests.contract.stage import Answer, Stage
from tests.support.waiting import PATIENCE_S, look_again
from tests.support.webhook_stage import Received

_KEYS = "/v1/keys"
_KEY = f"{_KEYS}/{{key_id}}"
_SECRET = "/v1/account/webhook-secret/rotate"
_NEW = {"service": "platform", "name": "CI", "scopes": ["calls.read"]}


def key(by: str = "own", **body: Any) -> Given:
    """The id of a key of an account."""

    async def given(stage: Stage) -> str:
        return str((await stage.data("POST", _KEYS, by=by, body={**_NEW, **body}))["id"])

    return given


def key_of(service: Service) -> Given:
    """The id of a key of a service with every scope of it, made by the operator."""

    async def given(stage: Stage) -> str:
        made, _ = await stage.server.storage.keys.issue(stage.own.account_sid, service, SCOPES[service])
        return made.key_id

    return given


async def rotated(stage: Stage) -> str:
    """The id of a key that has a successor."""
    key_id = str(await key()(stage))
    await stage.data("POST", f"{_KEYS}/{key_id}/rotate", body={})
    return key_id


async def of_the_platform(stage: Stage) -> str:
    """Authorization by the key of the platform, which lacks all other services."""
    return f"Bearer {stage.own.key}"


async def of_a_key_that_makes_keys(stage: Stage) -> str:
    """Authorization by a key that may read calls and make keys, and nothing else."""
    made = await stage.server.storage.keys.create(
        stage.own.account_sid, "all", ["calls.read", "keys.read", "keys.write"]
    )
    return f"Bearer {made}"


async def once(_: Stage) -> str:
    """An idempotency key that is used once."""
    return str(uuid.uuid4())


async def _is_the_account(stage: Stage, answer: Answer) -> None:
    shown = answer.data
    assert (shown["account_sid"], shown["name"]) == (stage.own.account_sid, "own")
    assert shown["balance"] >= shown["available"] > 0 and shown["currency"] == "INR"
    assert (shown["kyc_complete"], shown["environment"]) == (True, "live")
    assert (shown["limits"]["max_calls"], shown["limits"]["max_cps"]) == (1000, 1000)
    assert (shown["key"]["service"], shown["key"]["current"]) == ("all", True)
    assert set(shown["key"]["scopes"]) == set(SCOPES["all"])
    assert stage.own.keys["all"].startswith(shown["key"]["prefix"])


async def _shows_no_money(_: Stage, answer: Answer) -> None:
    assert (answer.data["balance"], answer.data["available"]) == (None, None)
    assert answer.data["key"]["service"] == "tools"


async def _is_the_others(stage: Stage, answer: Answer) -> None:
    assert answer.data["account_sid"] == stage.accounts["other"].account_sid
    assert answer.data["key"]["id"] not in [item["id"] for item in await stage.data("GET", _KEYS)]


async def _tools_key(stage: Stage) -> str:
    return f"Bearer {stage.own.keys['tools']}"


async def _every_scope(stage: Stage) -> str:
    return f"Bearer {stage.own.every_scope_key}"


async def _opens_what_it_says(stage: Stage, answer: Answer) -> None:
    made = answer.data
    assert (made["service"], made["scopes"], made["name"]) == ("platform", ["calls.read"], "CI")
    assert (made["current"], made["expires_at"]) == (False, None)
    assert made["key"].startswith(made["prefix"])
    assert (await stage.ask("GET", "/v1/calls", key=made["key"])).status == 200
    assert (await stage.ask("GET", _KEYS, key=made["key"])).status == 403


async def _opens_every_service(stage: Stage, answer: Answer) -> None:
    assert answer.data["scopes"] == ["*"] and answer.data["key"].startswith("vk_")
    paths = ("/v1/webhooks/subscriptions", "/api/webhook-endpoints", "/api/v1/keys", "/integrations/v1/tools")
    for path in paths:
        assert (await stage.ask("GET", path, key=answer.data["key"])).status == 200, path


async def _names_what_is_lacking(_: Stage, answer: Answer) -> None:
    assert "the service messaging" in answer.message


async def _names_the_scope(_: Stage, answer: Answer) -> None:
    assert answer.message.endswith("calls.write.")


async def _is_confined(stage: Stage, answer: Answer) -> None:
    listed = await stage.data("GET", _KEYS, query={"per_page": "100"})
    assert answer.data["id"] not in [item["id"] for item in listed]


async def _tells_no_key(stage: Stage, answer: Answer) -> None:
    assert answer.meta["total"] >= len(answer.data) > 1
    assert all("key" not in item for item in answer.data)
    for secret in (*stage.own.keys.values(), stage.own.every_scope_key, stage.own.revoked_key):
        assert secret.encode() not in answer.raw
    assert stage.own.revoked_key[:8] not in [item["prefix"] for item in answer.data], "it is no longer valid"


async def _sees_its_own(stage: Stage, answer: Answer) -> None:
    own = {item["id"] for item in await stage.data("GET", _KEYS, query={"per_page": "100"})}
    assert own.isdisjoint(item["id"] for item in answer.data)


async def _both_are_valid(_: Stage, answer: Answer) -> None:
    made = answer.data
    assert (made["name"], made["scopes"], made["expires_at"]) == ("CI", ["calls.read"], None)
    assert made["replaces"]["expires_at"] is not None and made["key"].startswith("vp_")


async def _is_gone(stage: Stage, _: Answer) -> None:
    listed = await stage.data("GET", _KEYS, query={"per_page": "100"})
    assert [item["id"] for item in listed if item["name"] == "to be revoked"] == []


async def _signs_beside_the_former(stage: Stage, answer: Answer) -> None:
    """The next webhook has both signatures of Standard Webhooks, and the other by the former secret."""
    made = answer.data
    assert made["webhook_secret"].startswith("whsec_") and made["former_secret_until"]
    account = await stage.server.storage.accounts.get(stage.own.account_sid)
    assert account.webhook_secret == made["webhook_secret"] and account.former_webhook_secret is not None
    got = await _next_webhook(stage, "/rotated")
    by_former = hmac.new(account.former_webhook_secret.encode(), got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Service-Signature"] == f"sha256={by_former}"
    assert got.headers["webhook-signature"].split(" ") == [
        _standard(secret, got) for secret in (made["webhook_secret"], account.former_webhook_secret)
    ]


async def _signs_alone(stage: Stage, answer: Answer) -> None:
    made = answer.data
    assert made["former_secret_until"] is None
    got = await _next_webhook(stage, "/rotated-at-once")
    signature = hmac.new(made["webhook_secret"].encode(), got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Service-Signature"] == f"sha256={signature}"
    assert got.headers["webhook-signature"] == _standard(made["webhook_secret"], got)


async def _next_webhook(stage: Stage, path: str) -> Received:
    body = {
        "from": await caller_id()(stage),
        "to": BUSY,
        "verbs": [{"verb": "hangup"}],
        "status_webhook_url": stage.receiver.url(path),
    }
    await stage.data("POST", "/v1/calls", body=body)
    async with asyncio.timeout(PATIENCE_S):
        while not (found := [item for item in stage.receiver.requests if item.path == path]):
            await look_again()
    return found[0]


def _standard(secret: str, got: Received) -> str:
    content = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    digest = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), content, "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"


async def _is_not_the_owns(stage: Stage, answer: Answer) -> None:
    own = await stage.server.storage.accounts.get(stage.own.account_sid)
    assert answer.data["webhook_secret"] not in (own.webhook_secret, own.former_webhook_secret)


CASES = (
    *row(
        "GET /v1/account",
        ok(then=_is_the_account),
        ok(name="a key without calls.read", headers={"Authorization": _tools_key}, then=_shows_no_money),
        unseen(then=_is_the_others),
    ),
    *row(
        f"POST {_SECRET}",
        ok(body={"overlap_seconds": 3600}, then=_signs_beside_the_former),
        ok(name="without an overlap", body={"overlap_seconds": 0}, then=_signs_alone),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"overlap_seconds": -1, "colour": "red"},
            fields=("overlap_seconds", "colour"),
        ),
        unseen(body={}, headers={"Idempotency-Key": once}, then=_is_not_the_owns),
    ),
    *row(
        f"GET {_KEYS}",
        ok(before=(key(), key()), query={"per_page": "100"}, then=_tells_no_key),
        refused(400, "VALIDATION_ERROR", query={"page": "0", "per_page": "101"}, fields=("page", "per_page")),
        unseen(before=(key(),), query={"per_page": "100"}, then=_sees_its_own),
    ),
    *row(
        f"POST {_KEYS}",
        ok(201, body=_NEW, headers={"Idempotency-Key": once}, then=_opens_what_it_says),
        ok(
            201,
            name="every scope of every service",
            headers={"Authorization": _every_scope},
            body={"service": "all", "name": "all", "scopes": ["*"]},
            then=_opens_every_service,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"service": "kitchen", "name": "", "scopes": [], "colour": "red"},
            fields=("service", "name", "scopes", "colour"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a scope of another service",
            body={**_NEW, "scopes": ["messages.send"]},
            fields=("scopes",),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="the wildcard beside others",
            body={**_NEW, "scopes": ["*", "calls.read"]},
            fields=("scopes",),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a sandbox that the service has not",
            body={**_NEW, "environment": "sandbox"},
            fields=("environment",),
        ),
        refused(
            403,
            "FORBIDDEN",
            name="another service",
            headers={"Authorization": of_the_platform},
            body={"service": "messaging", "name": "more", "scopes": ["messages.send"]},
            then=_names_what_is_lacking,
        ),
        refused(
            403,
            "FORBIDDEN",
            name="a scope that it lacks",
            headers={"Authorization": of_a_key_that_makes_keys},
            body={**_NEW, "scopes": ["calls.read", "calls.write"]},
            then=_names_the_scope,
        ),
        refused(
            403,
            "FORBIDDEN",
            name="the wildcard, by a key that names its scopes",
            body={"service": "platform", "name": "more", "scopes": ["*"]},
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a tool that there is not",
            body={"service": "tools", "name": "desk", "scopes": ["tool:no_such_tool"]},
            fields=("scopes",),
        ),
        refused(409, "CONFLICT", body=_NEW, during=limited(managed_keys, "MAX_KEYS")),
        unseen(201, body=_NEW, then=_is_confined),
    ),
    *row(
        f"POST {_KEY}/rotate",
        ok(201, path={"key_id": key()}, body={"overlap_seconds": 60}, then=_both_are_valid),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"key_id": key()},
            body={"overlap_seconds": -1},
            fields=("overlap_seconds",),
        ),
        refused(
            403,
            "FORBIDDEN",
            name="of a key with more rights",
            headers={"Authorization": of_the_platform},
            path={"key_id": key_of("messaging")},
            body={},
            then=_names_what_is_lacking,
        ),
        foreign(404, "NOT_FOUND", path={"key_id": key()}, body={}),
        refused(404, "NOT_FOUND", path={"key_id": NOWHERE}, body={}),
        refused(409, "CONFLICT", path={"key_id": rotated}, body={}),
    ),
    *row(
        f"DELETE {_KEY}",
        ok(204, path={"key_id": key(name="to be revoked")}, then=_is_gone),
        refused(
            403,
            "FORBIDDEN",
            name="of a key with more rights",
            headers={"Authorization": of_the_platform},
            path={"key_id": key_of("messaging")},
            then=_names_what_is_lacking,
        ),
        foreign(404, "NOT_FOUND", path={"key_id": key()}),
        refused(404, "NOT_FOUND", path={"key_id": NOWHERE}),
    ),
)
