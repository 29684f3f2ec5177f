# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.managed_tools`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from trunkline_client.generated.fields import managed_tools as fields_of
from trunkline_client.generated.results import managed_tools
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_LIST = Operation("GET", "/integrations/admin/tools")
_REGISTER = Operation("POST", "/integrations/admin/tools")
_GET = Operation("GET", "/integrations/admin/tools/{name}")
_UPDATE = Operation("POST", "/integrations/admin/tools/{name}")
_ENABLE = Operation("POST", "/integrations/admin/tools/{name}/enable")
_DISABLE = Operation("POST", "/integrations/admin/tools/{name}/disable")
_DELETE = Operation("POST", "/integrations/admin/tools/{name}/delete")


class ManagedToolsResource(Resource):
    """Operations of `client.managed_tools`."""

    def list(self) -> Sequence[managed_tools.ManagedTool]:
        """List all tools, disabled ones too."""
        return self._transport.items(_LIST, (), {}, managed_tools.ManagedTool)

    def register(self, **fields: Unpack[fields_of.RegisterToolFields]) -> managed_tools.NewTool:
        """Register a tool that sends requests to your server."""
        return self._transport.item(_REGISTER, (), fields, managed_tools.NewTool)

    def get(self, name: str, /) -> managed_tools.ManagedTool:
        """Get a tool."""
        return self._transport.item(_GET, (name,), {}, managed_tools.ManagedTool)

    def update(self, name: str, /, **fields: Unpack[fields_of.UpdateToolFields]) -> managed_tools.ManagedTool:
        """Change a tool."""
        return self._transport.item(_UPDATE, (name,), fields, managed_tools.ManagedTool)

    def enable(self, name: str, /) -> managed_tools.ManagedTool:
        """Enable a tool."""
        return self._transport.item(_ENABLE, (name,), {}, managed_tools.ManagedTool)

    def disable(self, name: str, /) -> managed_tools.ManagedTool:
        """Disable a tool, built-in ones too."""
        return self._transport.item(_DISABLE, (name,), {}, managed_tools.ManagedTool)

    def delete(self, name: str, /) -> None:
        """Delete a tool that you have registered."""
        return self._transport.nothing(_DELETE, (name,), {})


class AsyncManagedToolsResource(AsyncResource):
    """Operations of `client.managed_tools`."""

    async def list(self) -> Sequence[managed_tools.ManagedTool]:
        """List all tools, disabled ones too."""
        return await self._transport.items(_LIST, (), {}, managed_tools.ManagedTool)

    async def register(self, **fields: Unpack[fields_of.RegisterToolFields]) -> managed_tools.NewTool:
        """Register a tool that sends requests to your server."""
        return await self._transport.item(_REGISTER, (), fields, managed_tools.NewTool)

    async def get(self, name: str, /) -> managed_tools.ManagedTool:
        """Get a tool."""
        return await self._transport.item(_GET, (name,), {}, managed_tools.ManagedTool)

    async def update(
        self, name: str, /, **fields: Unpack[fields_of.UpdateToolFields]
    ) -> managed_tools.ManagedTool:
        """Change a tool."""
        return await self._transport.item(_UPDATE, (name,), fields, managed_tools.ManagedTool)

    async def enable(self, name: str, /) -> managed_tools.ManagedTool:
        """Enable a tool."""
        return await self._transport.item(_ENABLE, (name,), {}, managed_tools.ManagedTool)

    async def disable(self, name: str, /) -> managed_tools.ManagedTool:
        """Disable a tool, built-in ones too."""
        return await self._transport.item(_DISABLE, (name,), {}, managed_tools.ManagedTool)

    async def delete(self, name: str, /) -> None:
        """Delete a tool that you have registered."""
        return await self._transport.nothing(_DELETE, (name,), {})
