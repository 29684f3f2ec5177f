"""Tools: listed and used with an app key (telephony specification, tool-integration service)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Identifiers, Reply
from api.schemas.base import NoBody, NoQuery
from api.schemas.tools import ExecutedTool, ExecuteTool, ToolObjects
from callcontrol.errors import (
    CallEnded,
    Conflict,
    InsufficientBalance,
    NumberNotOwned,
    SendFailed,
    SpendLimitReached,
    ToolFailed,
    ToolTimedOut,
)
from callcontrol.tools.models import Tool, ToolAnnotations

__all__ = ["ENDPOINTS", "tool_json"]


async def list_tools(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /v1/tools of the tool-integration service."""
    return Reply([tool_json(tool) for tool in await context.services.tools.service.list(context.principal)])


async def execute_tool(context: Context[ExecuteTool, NoQuery]) -> Reply:
    """Answer POST /v1/tools/{name}/execute of the tool-integration service."""
    name = context.path["name"]
    done = await context.services.tools.service.execute(context.principal, name, context.body.arguments)
    return Reply({"tool": name, "result": done.content, "duration_ms": done.duration_ms})


def tool_json(tool: Tool) -> dict[str, Any]:
    """Public fields of a tool for its users."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "kind": tool.kind,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "annotations": {name: getattr(tool.annotations, name) for name in ToolAnnotations.__slots__},
    }


_TOOLS: dict[str, Any] = {"tag": "tools", "scope": "tools", "service": "tools"}

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="GET",
        path="/integrations/v1/tools",
        handler=list_tools,
        summary="List the tools that the key may use",
        response=ToolObjects,
        **_TOOLS,
    ),
    Endpoint(
        method="POST",
        path="/integrations/v1/tools/{name}/execute",
        handler=execute_tool,
        summary="Execute a tool",
        description=(
            "What a built-in tool is refused with is answered as by the endpoint that does the same. The"
            " header Idempotency-Key makes a repetition harmless."
        ),
        body=ExecuteTool,
        response=ExecutedTool,
        identifiers=Identifiers.NAME,
        idempotent=True,
        errors=(
            Conflict,
            CallEnded,
            InsufficientBalance,
            SpendLimitReached,
            NumberNotOwned,
            SendFailed,
            ToolFailed,
            ToolTimedOut,
        ),
        **_TOOLS,
    ),
)
