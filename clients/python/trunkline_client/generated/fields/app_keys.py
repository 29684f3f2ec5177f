# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import NotRequired, TypedDict


class CreateAppKeyFields(TypedDict):
    """
    Fields of `app_keys.create`.
    """

    name: str
    tools: NotRequired[list[str] | None]
