# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.app_keys`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from trunkline_client.generated.fields import app_keys as fields_of
from trunkline_client.generated.results import app_keys
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_LIST = Operation("GET", "/integrations/admin/keys")
_CREATE = Operation("POST", "/integrations/admin/keys")
_REVOKE = Operation("POST", "/integrations/admin/keys/{key_id}/revoke")


class AppKeysResource(Resource):
    """Operations of `client.app_keys`."""

    def list(self) -> Sequence[app_keys.AppKey]:
        """List app keys, oldest first."""
        return self._transport.items(_LIST, (), {}, app_keys.AppKey)

    def create(self, **fields: Unpack[fields_of.CreateAppKeyFields]) -> app_keys.NewAppKey:
        """Create an app key."""
        return self._transport.item(_CREATE, (), fields, app_keys.NewAppKey)

    def revoke(self, key_id: str, /) -> app_keys.AppKey:
        """Revoke an app key."""
        return self._transport.item(_REVOKE, (key_id,), {}, app_keys.AppKey)


class AsyncAppKeysResource(AsyncResource):
    """Operations of `client.app_keys`."""

    async def list(self) -> Sequence[app_keys.AppKey]:
        """List app keys, oldest first."""
        return await self._transport.items(_LIST, (), {}, app_keys.AppKey)

    async def create(self, **fields: Unpack[fields_of.CreateAppKeyFields]) -> app_keys.NewAppKey:
        """Create an app key."""
        return await self._transport.item(_CREATE, (), fields, app_keys.NewAppKey)

    async def revoke(self, key_id: str, /) -> app_keys.AppKey:
        """Revoke an app key."""
        return await self._transport.item(_REVOKE, (key_id,), {}, app_keys.AppKey)
