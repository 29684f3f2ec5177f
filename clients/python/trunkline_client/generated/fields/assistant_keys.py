# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class CreateAssistantKeyFields(TypedDict):
    """
    Fields of `assistant_keys.create`.
    """

    name: str
    environment: NotRequired[Literal['live', 'sandbox'] | None]
    scopes: NotRequired[list[Literal['assistant', 'assistant.keys', '*']] | None]


class RotateAssistantKeyFields(TypedDict):
    """
    Fields of `assistant_keys.rotate`.
    """

    overlap_seconds: NotRequired[int]
