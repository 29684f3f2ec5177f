# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.streams`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import streams as fields_of
from trunkline_client.generated.results import streams
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_GET_SETTINGS = Operation("GET", "/v1/streams/settings")
_UPDATE_SETTINGS = Operation("PATCH", "/v1/streams/settings")
_ROTATE_SECRET = Operation("POST", "/v1/streams/secret/rotate")


class StreamsResource(Resource):
    """Operations of `client.streams`."""

    def get_settings(self) -> streams.StreamSettings:
        """Get how agents are spoken to by default."""
        return self._transport.item(_GET_SETTINGS, (), {}, streams.StreamSettings)

    def update_settings(
        self, **fields: Unpack[fields_of.UpdateStreamSettingsFields]
    ) -> streams.StreamSettings:
        """Set how agents are spoken to by default."""
        return self._transport.item(_UPDATE_SETTINGS, (), fields, streams.StreamSettings)

    def rotate_secret(self, **fields: Unpack[fields_of.RotateStreamSecretFields]) -> streams.StreamSecret:
        """Make a new secret that signs requests to agents."""
        return self._transport.item(_ROTATE_SECRET, (), fields, streams.StreamSecret)


class AsyncStreamsResource(AsyncResource):
    """Operations of `client.streams`."""

    async def get_settings(self) -> streams.StreamSettings:
        """Get how agents are spoken to by default."""
        return await self._transport.item(_GET_SETTINGS, (), {}, streams.StreamSettings)

    async def update_settings(
        self, **fields: Unpack[fields_of.UpdateStreamSettingsFields]
    ) -> streams.StreamSettings:
        """Set how agents are spoken to by default."""
        return await self._transport.item(_UPDATE_SETTINGS, (), fields, streams.StreamSettings)

    async def rotate_secret(
        self, **fields: Unpack[fields_of.RotateStreamSecretFields]
    ) -> streams.StreamSecret:
        """Make a new secret that signs requests to agents."""
        return await self._transport.item(_ROTATE_SECRET, (), fields, streams.StreamSecret)
