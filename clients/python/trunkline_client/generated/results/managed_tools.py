# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field
from trunkline_client.operation import Result


class ManagedTool(Result):
    """
    A tool as its account manages it; of a built-in one, only `is_enabled` can change.
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
    is_enabled: bool
    url: str | None
    method: str | None
    headers: Annotated[list[str], Field(description='The names of its headers.')]
    timeout_sec: int | None
    created_at: datetime | None
    updated_at: datetime | None


class NewTool(Result):
    """
    A newly registered tool, with its secret.
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
    is_enabled: bool
    url: str | None
    method: str | None
    headers: Annotated[list[str], Field(description='The names of its headers.')]
    timeout_sec: int | None
    created_at: datetime | None
    updated_at: datetime | None
    secret: Annotated[str, Field(description='Shown this once.')]
