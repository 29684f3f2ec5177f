"""Keys of the voice assistant, managed by a key with that scope (additive)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.routes.assistant.calls import ASSISTANT
from api.schemas.assistant.keys import (
    CreateKey,
    KeyObjects,
    NewKeyObject,
    RotatedKeyObject,
    RotateKey,
)
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import rfc3339
from callcontrol.errors import Conflict
from callcontrol.models import ApiKey

__all__ = ["ENDPOINTS"]


async def create_assistant_key(context: Context[CreateKey, NoQuery]) -> Reply:
    """Answer POST /v1/keys of the voice assistant."""
    body = context.body
    made, key = await context.storage.assistant_keys.create(
        context.principal, body.name, body.environment, body.scopes
    )
    return Reply({**_json(made), "key": key})


async def list_assistant_keys(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /v1/keys of the voice assistant."""
    return Reply([_json(key) for key in await context.storage.assistant_keys.list(context.principal)])


async def rotate_assistant_key(context: Context[RotateKey, NoQuery]) -> Reply:
    """Answer POST /v1/keys/{key_id}/rotate of the voice assistant."""
    made, key, former = await context.storage.assistant_keys.rotate(
        context.principal, context.path["key_id"], context.body.overlap_seconds
    )
    return Reply({**_json(made), "key": key, "replaces": _json(former)})


async def revoke_assistant_key(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /v1/keys/{key_id} of the voice assistant."""
    await context.storage.assistant_keys.revoke(context.principal, context.path["key_id"])
    return Reply(None)


def _json(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.key_id,
        "name": key.name,
        "environment": key.environment,
        "scopes": list(key.scopes),
        "prefix": key.prefix,
        "state": "active" if key.revoked_at is None else "retiring",
        "created_at": rfc3339(key.created_at),
        "expires_at": rfc3339(key.revoked_at),
    }


_ALL = "/api/v1/keys"
_ONE = _ALL + "/{key_id}"
_MANAGE: dict[str, Any] = {**ASSISTANT, "scope": "assistant.keys", "tag": "voice assistant keys"}

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_ALL,
        handler=create_assistant_key,
        summary="Create a key of the assistant",
        description="It opens no more than the key that creates it. It is shown this once.",
        success=201,
        body=CreateKey,
        response=NewKeyObject,
        errors=(Conflict,),
        **_MANAGE,
    ),
    Endpoint(
        method="GET",
        path=_ALL,
        handler=list_assistant_keys,
        summary="List keys of the assistant, oldest first",
        response=KeyObjects,
        **_MANAGE,
    ),
    Endpoint(
        method="POST",
        path=_ONE + "/rotate",
        handler=rotate_assistant_key,
        summary="Have a key followed by another",
        description="Both are valid until the overlap is over.",
        success=201,
        body=RotateKey,
        response=RotatedKeyObject,
        errors=(Conflict,),
        **_MANAGE,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=revoke_assistant_key,
        summary="Revoke a key of the assistant",
        description="At once. A key may revoke itself.",
        success=204,
        response=None,
        **_MANAGE,
    ),
)
