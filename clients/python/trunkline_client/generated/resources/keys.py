# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.keys`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import keys as fields_of
from trunkline_client.generated.results import keys, shared
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_LIST = Operation("GET", "/v1/keys", queries=frozenset({"per_page"}))
_CREATE = Operation("POST", "/v1/keys", idempotent=True)
_ROTATE = Operation("POST", "/v1/keys/{key_id}/rotate", idempotent=True)
_REVOKE = Operation("DELETE", "/v1/keys/{key_id}")


class KeysResource(Resource):
    """Operations of `client.keys`."""

    def list(self, **fields: Unpack[fields_of.ListKeysFields]) -> Pages[shared.AccountKey]:
        """List valid keys of all services, newest first."""
        return self._transport.pages(_LIST, (), fields, shared.AccountKey)

    def create(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.CreateKeyFields]
    ) -> keys.NewAccountKey:
        """Create a key of any service."""
        return self._transport.item(_CREATE, (), fields, keys.NewAccountKey, idempotency_key)

    def rotate(
        self, key_id: str, /, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.RotateKeyFields]
    ) -> keys.RotatedAccountKey:
        """Replace a key by a new one with its service and scopes."""
        return self._transport.item(_ROTATE, (key_id,), fields, keys.RotatedAccountKey, idempotency_key)

    def revoke(self, key_id: str, /) -> None:
        """Revoke a key."""
        return self._transport.nothing(_REVOKE, (key_id,), {})


class AsyncKeysResource(AsyncResource):
    """Operations of `client.keys`."""

    def list(self, **fields: Unpack[fields_of.ListKeysFields]) -> AsyncPages[shared.AccountKey]:
        """List valid keys of all services, newest first."""
        return self._transport.pages(_LIST, (), fields, shared.AccountKey)

    async def create(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.CreateKeyFields]
    ) -> keys.NewAccountKey:
        """Create a key of any service."""
        return await self._transport.item(_CREATE, (), fields, keys.NewAccountKey, idempotency_key)

    async def rotate(
        self, key_id: str, /, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.RotateKeyFields]
    ) -> keys.RotatedAccountKey:
        """Replace a key by a new one with its service and scopes."""
        return await self._transport.item(_ROTATE, (key_id,), fields, keys.RotatedAccountKey, idempotency_key)

    async def revoke(self, key_id: str, /) -> None:
        """Revoke a key."""
        return await self._transport.nothing(_REVOKE, (key_id,), {})
