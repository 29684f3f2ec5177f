"""Stored keys of vendors of speech models (an addition to the specification)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.schemas.base import NoBody, NoQuery
from api.schemas.model import CreateModelKey, ModelKeyObject, ModelKeyObjects
from api.schemas.serializers import shown
from callcontrol.errors import Conflict
from callcontrol.model_keys.keys import ModelKey

__all__ = ["routes"]

_KEYS = "/v1/model-keys"

routes = Routes("models.read", "models.write", tag="model keys")


@routes.post(_KEYS, response=ModelKeyObject, success=201, errors=(Conflict,))
async def create_model_key(context: Context[CreateModelKey, NoQuery]) -> Reply:
    """
    Store a key of a vendor of speech models.

    Calls name it in model.key. It cannot be read again.
    """
    made = await context.storage.model_keys.create(context.account_sid, context.body.model_dump())
    return Reply(_json(made))


@routes.get(_KEYS, response=ModelKeyObjects)
async def list_model_keys(context: Context[NoBody, NoQuery]) -> Reply:
    """List the stored keys, oldest first, without the keys themselves."""
    return Reply([_json(key) for key in await context.storage.model_keys.list(context.account_sid)])


@routes.delete(_KEYS + "/{key_id}")
async def delete_model_key(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete a stored key.

    Sessions that are open go on; later calls that name it fail.
    """
    await context.storage.model_keys.delete(context.account_sid, context.path["key_id"])
    return Reply(None)


def _json(key: ModelKey) -> dict[str, Any]:
    return shown(ModelKeyObject, key)
