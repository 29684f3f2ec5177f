# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from trunkline_client.operation import Result


class ExecutedTool(Result):
    """
    Result of a tool execution.
    """

    tool: str
    result: Annotated[
        Any, Field(description='JSON, a text, or null when the tool answered nothing.')
    ]
    duration_ms: int


class Tool(Result):
    """
    A tool as its users see it.
    """

    name: str
    title: str
    description: str
    kind: Literal['builtin', 'http']
    input_schema: Annotated[
        dict[str, Any], Field(description='JSON Schema of the arguments.')
    ]
    output_schema: Annotated[
        dict[str, Any] | None, Field(description='JSON Schema of the result, if known.')
    ]
    annotations: dict[str, bool]
