"""Tools: listed and used with an app key (telephony specification, tool-integration service)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Identifiers, Reply, Routes
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import shown
from api.schemas.tools import ExecutedTool, ExecuteTool, ToolObject, ToolObjects
from callcontrol.errors import (
    CallEnded,
    ChannelNotConfigured,
    Conflict,
    InsufficientBalance,
    NumberNotOwned,
    SendFailed,
    SpendLimitReached,
    ToolFailed,
    ToolTimedOut,
)
from callcontrol.tools.models import Tool, ToolAnnotations

__all__ = ["routes", "tool_json"]

routes = Routes("tools", tag="tools", service="tools")


@routes.get("/integrations/v1/tools", response=ToolObjects)
async def list_tools(context: Context[NoBody, NoQuery]) -> Reply:
    """List the tools that the key may use."""
    return Reply([tool_json(tool) for tool in await context.services.tools.service.list(context.principal)])


@routes.post(
    "/integrations/v1/tools/{name}/execute",
    response=ExecutedTool,
    errors=(
        Conflict,
        CallEnded,
        InsufficientBalance,
        SpendLimitReached,
        NumberNotOwned,
        ChannelNotConfigured,
        SendFailed,
        ToolFailed,
        ToolTimedOut,
    ),
    identifiers=Identifiers.NAME,
    idempotent=True,
)
async def execute_tool(context: Context[ExecuteTool, NoQuery]) -> Reply:
    """
    Execute a tool.

    What a built-in tool is refused with is answered as by the endpoint that does the same. The header
    Idempotency-Key makes a repetition harmless.
    """
    name = context.path["name"]
    done = await context.services.tools.service.execute(context.principal, name, context.body.arguments)
    return Reply({"tool": name, "result": done.content, "duration_ms": done.duration_ms})


def tool_json(tool: Tool) -> dict[str, Any]:
    """Public fields of a tool for its users."""
    annotations = {name: getattr(tool.annotations, name) for name in ToolAnnotations.__slots__}
    return shown(ToolObject, tool, annotations=annotations)
