"""Descriptions of tools, and results of their use."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ToolKind = Literal["builtin", "http"]


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """
    Hints for applications that let a model use a tool, as in the Model Context Protocol.

    A ``destructive`` tool cannot be undone, an ``idempotent`` tool does nothing more when it is repeated, an
    ``open_world`` tool reaches beyond this server: a phone, another server.
    """

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True


@dataclass(frozen=True, slots=True)
class Tool:
    """
    A tool for agents and programs of an account, described for models and people.

    ``input_schema`` and ``output_schema`` are JSON Schemas (draft 2020-12) of type object: of the arguments,
    and of the structured result.
    """

    name: str
    title: str
    description: str
    kind: ToolKind
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    is_enabled: bool = True


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Result of a tool: a JSON value or a text, and the duration."""

    content: Any
    duration_ms: int = 0

    @property
    def structured(self) -> Mapping[str, Any] | None:
        """The result if it is an object, as structured content has to be; None otherwise."""
        return self.content if isinstance(self.content, Mapping) else None

    @property
    def text(self) -> str:
        """The result as text."""
        if isinstance(self.content, str):
            return self.content
        return json.dumps(self.content, ensure_ascii=False)
