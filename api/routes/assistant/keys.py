"""Keys of the voice assistant, managed by a key with that scope (additive)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.schemas.assistant.keys import (
    CreateKey,
    KeyObject,
    KeyObjects,
    NewKeyObject,
    RotatedKeyObject,
    RotateKey,
)
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import shown
from callcontrol.errors import Conflict
from callcontrol.models import ApiKey

__all__ = ["routes"]

_ALL = "/api/v1/keys"
_ONE = _ALL + "/{key_id}"

routes = Routes("assistant.keys", tag="voice assistant keys", service="assistant")


@routes.post(_ALL, response=NewKeyObject, success=201, errors=(Conflict,))
async def create_assistant_key(context: Context[CreateKey, NoQuery]) -> Reply:
    """
    Create a key of the assistant.

    It opens no more than the key that creates it. It is shown this once.
    """
    body = context.body
    made, key = await context.storage.assistant_keys.create(
        context.principal, body.name, body.environment, body.scopes
    )
    return Reply({**_json(made), "key": key})


@routes.get(_ALL, response=KeyObjects)
async def list_assistant_keys(context: Context[NoBody, NoQuery]) -> Reply:
    """List keys of the assistant, oldest first."""
    return Reply([_json(key) for key in await context.storage.assistant_keys.list(context.principal)])


@routes.post(_ONE + "/rotate", response=RotatedKeyObject, success=201, errors=(Conflict,))
async def rotate_assistant_key(context: Context[RotateKey, NoQuery]) -> Reply:
    """
    Rotate a key of the assistant.

    Both are valid until the overlap is over.
    """
    made, key, former = await context.storage.assistant_keys.rotate(
        context.principal, context.path["key_id"], context.body.overlap_seconds
    )
    return Reply({**_json(made), "key": key, "replaces": _json(former)})


@routes.delete(_ONE)
async def revoke_assistant_key(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Revoke a key of the assistant.

    At once. A key may revoke itself.
    """
    await context.storage.assistant_keys.revoke(context.principal, context.path["key_id"])
    return Reply(None)


def _json(key: ApiKey) -> dict[str, Any]:
    state = "active" if key.revoked_at is None else "retiring"
    return shown(KeyObject, key, id=key.key_id, state=state, expires_at=key.revoked_at)
