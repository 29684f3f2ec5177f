# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Annotations(TypedDict):
    """
    Hints for clients that let a model use the tool.
    """

    read_only: NotRequired[bool]
    destructive: NotRequired[bool]
    idempotent: NotRequired[bool]
    open_world: NotRequired[bool]


class RegisterToolFields(TypedDict):
    """
    Fields of `managed_tools.register`.
    """

    name: str
    description: str
    url: str
    title: NotRequired[str | None]
    input_schema: NotRequired[dict[str, Any] | None]
    output_schema: NotRequired[dict[str, Any] | None]
    annotations: NotRequired[Annotations | None]
    method: NotRequired[Literal['GET', 'POST', 'PUT', 'PATCH', 'DELETE']]
    headers: NotRequired[dict[str, str] | None]
    timeout_sec: NotRequired[int]
    secret: NotRequired[str | None]


class UpdateToolFields(TypedDict):
    """
    Fields of `managed_tools.update`.
    """

    description: NotRequired[str | None]
    url: NotRequired[str | None]
    title: NotRequired[str | None]
    input_schema: NotRequired[dict[str, Any] | None]
    output_schema: NotRequired[dict[str, Any] | None]
    annotations: NotRequired[Annotations | None]
    method: NotRequired[Literal['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] | None]
    headers: NotRequired[dict[str, str] | None]
    timeout_sec: NotRequired[int | None]
    secret: NotRequired[str | None]
