# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.model_keys`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from trunkline_client.generated.fields import model_keys as fields_of
from trunkline_client.generated.results import model_keys
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_CREATE = Operation("POST", "/v1/model-keys")
_LIST = Operation("GET", "/v1/model-keys")
_DELETE = Operation("DELETE", "/v1/model-keys/{key_id}")


class ModelKeysResource(Resource):
    """Operations of `client.model_keys`."""

    def create(self, **fields: Unpack[fields_of.CreateModelKeyFields]) -> model_keys.ModelKey:
        """Store a key of a vendor of speech models."""
        return self._transport.item(_CREATE, (), fields, model_keys.ModelKey)

    def list(self) -> Sequence[model_keys.ModelKey]:
        """List the stored keys, oldest first, without the keys themselves."""
        return self._transport.items(_LIST, (), {}, model_keys.ModelKey)

    def delete(self, key_id: str, /) -> None:
        """Delete a stored key."""
        return self._transport.nothing(_DELETE, (key_id,), {})


class AsyncModelKeysResource(AsyncResource):
    """Operations of `client.model_keys`."""

    async def create(self, **fields: Unpack[fields_of.CreateModelKeyFields]) -> model_keys.ModelKey:
        """Store a key of a vendor of speech models."""
        return await self._transport.item(_CREATE, (), fields, model_keys.ModelKey)

    async def list(self) -> Sequence[model_keys.ModelKey]:
        """List the stored keys, oldest first, without the keys themselves."""
        return await self._transport.items(_LIST, (), {}, model_keys.ModelKey)

    async def delete(self, key_id: str, /) -> None:
        """Delete a stored key."""
        return await self._transport.nothing(_DELETE, (key_id,), {})
