# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class ListKeysFields(TypedDict):
    """
    Fields of `keys.list`.
    """

    per_page: NotRequired[int]


class CreateKeyFields(TypedDict):
    """
    Fields of `keys.create`.
    """

    service: Literal['platform', 'messaging', 'assistant', 'tools', 'admin', 'all']
    name: str
    scopes: NotRequired[list[str] | None]
    environment: NotRequired[Literal['live', 'sandbox'] | None]


class RotateKeyFields(TypedDict):
    """
    Fields of `keys.rotate`.
    """

    overlap_seconds: NotRequired[int]
