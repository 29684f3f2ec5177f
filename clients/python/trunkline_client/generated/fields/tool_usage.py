# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import NotRequired, TypedDict


class ToolUsageFields(TypedDict):
    """
    Fields of `tool_usage.get`.
    """

    start_date: NotRequired[str | None]
    end_date: NotRequired[str | None]
    tool: NotRequired[str | None]
    key_id: NotRequired[str | None]
