# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.tools`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from trunkline_client.generated.fields import tools as fields_of
from trunkline_client.generated.results import tools
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_LIST = Operation("GET", "/integrations/v1/tools")
_EXECUTE = Operation("POST", "/integrations/v1/tools/{name}/execute", idempotent=True)


class ToolsResource(Resource):
    """Operations of `client.tools`."""

    def list(self) -> Sequence[tools.Tool]:
        """List the tools that the key may use."""
        return self._transport.items(_LIST, (), {}, tools.Tool)

    def execute(
        self, name: str, /, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.ExecuteToolFields]
    ) -> tools.ExecutedTool:
        """Execute a tool."""
        return self._transport.item(_EXECUTE, (name,), fields, tools.ExecutedTool, idempotency_key)


class AsyncToolsResource(AsyncResource):
    """Operations of `client.tools`."""

    async def list(self) -> Sequence[tools.Tool]:
        """List the tools that the key may use."""
        return await self._transport.items(_LIST, (), {}, tools.Tool)

    async def execute(
        self, name: str, /, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.ExecuteToolFields]
    ) -> tools.ExecutedTool:
        """Execute a tool."""
        return await self._transport.item(_EXECUTE, (name,), fields, tools.ExecutedTool, idempotency_key)
