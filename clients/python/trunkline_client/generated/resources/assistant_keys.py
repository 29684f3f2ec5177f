# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.assistant_keys`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from trunkline_client.generated.fields import assistant_keys as fields_of
from trunkline_client.generated.results import assistant_keys
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_CREATE = Operation("POST", "/api/v1/keys")
_LIST = Operation("GET", "/api/v1/keys")
_ROTATE = Operation("POST", "/api/v1/keys/{key_id}/rotate")
_REVOKE = Operation("DELETE", "/api/v1/keys/{key_id}")


class AssistantKeysResource(Resource):
    """Operations of `client.assistant_keys`."""

    def create(self, **fields: Unpack[fields_of.CreateAssistantKeyFields]) -> assistant_keys.NewKey:
        """Create a key of the assistant."""
        return self._transport.item(_CREATE, (), fields, assistant_keys.NewKey)

    def list(self) -> Sequence[assistant_keys.Key]:
        """List keys of the assistant, oldest first."""
        return self._transport.items(_LIST, (), {}, assistant_keys.Key)

    def rotate(
        self, key_id: str, /, **fields: Unpack[fields_of.RotateAssistantKeyFields]
    ) -> assistant_keys.RotatedKey:
        """Rotate a key of the assistant."""
        return self._transport.item(_ROTATE, (key_id,), fields, assistant_keys.RotatedKey)

    def revoke(self, key_id: str, /) -> None:
        """Revoke a key of the assistant."""
        return self._transport.nothing(_REVOKE, (key_id,), {})


class AsyncAssistantKeysResource(AsyncResource):
    """Operations of `client.assistant_keys`."""

    async def create(self, **fields: Unpack[fields_of.CreateAssistantKeyFields]) -> assistant_keys.NewKey:
        """Create a key of the assistant."""
        return await self._transport.item(_CREATE, (), fields, assistant_keys.NewKey)

    async def list(self) -> Sequence[assistant_keys.Key]:
        """List keys of the assistant, oldest first."""
        return await self._transport.items(_LIST, (), {}, assistant_keys.Key)

    async def rotate(
        self, key_id: str, /, **fields: Unpack[fields_of.RotateAssistantKeyFields]
    ) -> assistant_keys.RotatedKey:
        """Rotate a key of the assistant."""
        return await self._transport.item(_ROTATE, (key_id,), fields, assistant_keys.RotatedKey)

    async def revoke(self, key_id: str, /) -> None:
        """Revoke a key of the assistant."""
        return await self._transport.nothing(_REVOKE, (key_id,), {})
