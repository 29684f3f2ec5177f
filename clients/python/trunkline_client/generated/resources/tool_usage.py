# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.tool_usage`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import tool_usage as fields_of
from trunkline_client.generated.results import tool_usage
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_GET = Operation(
    "GET", "/integrations/admin/usage", queries=frozenset({"start_date", "end_date", "tool", "key_id"})
)


class ToolUsageResource(Resource):
    """Operations of `client.tool_usage`."""

    def get(self, **fields: Unpack[fields_of.ToolUsageFields]) -> tool_usage.Usage:
        """Usage of tools by day, tool and key."""
        return self._transport.item(_GET, (), fields, tool_usage.Usage)


class AsyncToolUsageResource(AsyncResource):
    """Operations of `client.tool_usage`."""

    async def get(self, **fields: Unpack[fields_of.ToolUsageFields]) -> tool_usage.Usage:
        """Usage of tools by day, tool and key."""
        return await self._transport.item(_GET, (), fields, tool_usage.Usage)
