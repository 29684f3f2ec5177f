# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.templates`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import templates as fields_of
from trunkline_client.generated.results import shared, templates
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_CREATE = Operation("POST", "/api/v1/templates")
_LIST = Operation("GET", "/api/v1/templates", queries=frozenset({"status", "pageSize"}))
_GET = Operation("GET", "/api/v1/templates/{id}")
_DELETE = Operation("DELETE", "/api/v1/templates/{id}")
_SYNC = Operation("POST", "/api/v1/templates/{id}/sync")
_GET_CHANNEL = Operation("GET", "/api/v1/channel")
_UPDATE_CHANNEL = Operation("PATCH", "/api/v1/channel")


class TemplatesResource(Resource):
    """Operations of `client.templates`."""

    def create(self, **fields: Unpack[fields_of.CreateTemplateFields]) -> templates.Template:
        """Create a template and submit it for approval."""
        return self._transport.item(_CREATE, (), fields, templates.Template)

    def list(self, **fields: Unpack[fields_of.ListTemplatesFields]) -> Pages[templates.Template]:
        """List approved templates, newest first."""
        return self._transport.pages(_LIST, (), fields, templates.Template)

    def get(self, identifier: int, /) -> templates.Template:
        """Get a template with its approval status."""
        return self._transport.item(_GET, (identifier,), {}, templates.Template)

    def delete(self, identifier: int, /) -> shared.Deleted:
        """Delete a template, here and at the network."""
        return self._transport.item(_DELETE, (identifier,), {}, shared.Deleted)

    def sync(self, identifier: int, /) -> templates.Template:
        """Refresh a template's approval status from the network."""
        return self._transport.item(_SYNC, (identifier,), {}, templates.Template)

    def get_channel(self) -> templates.Channel:
        """Get the channel that messages come from."""
        return self._transport.item(_GET_CHANNEL, (), {}, templates.Channel)

    def update_channel(self, **fields: Unpack[fields_of.UpdateChannelFields]) -> templates.Channel:
        """Change the channel that messages come from."""
        return self._transport.item(_UPDATE_CHANNEL, (), fields, templates.Channel)


class AsyncTemplatesResource(AsyncResource):
    """Operations of `client.templates`."""

    async def create(self, **fields: Unpack[fields_of.CreateTemplateFields]) -> templates.Template:
        """Create a template and submit it for approval."""
        return await self._transport.item(_CREATE, (), fields, templates.Template)

    def list(self, **fields: Unpack[fields_of.ListTemplatesFields]) -> AsyncPages[templates.Template]:
        """List approved templates, newest first."""
        return self._transport.pages(_LIST, (), fields, templates.Template)

    async def get(self, identifier: int, /) -> templates.Template:
        """Get a template with its approval status."""
        return await self._transport.item(_GET, (identifier,), {}, templates.Template)

    async def delete(self, identifier: int, /) -> shared.Deleted:
        """Delete a template, here and at the network."""
        return await self._transport.item(_DELETE, (identifier,), {}, shared.Deleted)

    async def sync(self, identifier: int, /) -> templates.Template:
        """Refresh a template's approval status from the network."""
        return await self._transport.item(_SYNC, (identifier,), {}, templates.Template)

    async def get_channel(self) -> templates.Channel:
        """Get the channel that messages come from."""
        return await self._transport.item(_GET_CHANNEL, (), {}, templates.Channel)

    async def update_channel(self, **fields: Unpack[fields_of.UpdateChannelFields]) -> templates.Channel:
        """Change the channel that messages come from."""
        return await self._transport.item(_UPDATE_CHANNEL, (), fields, templates.Channel)
