# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class StreamAuth(TypedDict):
    """
    Credentials for the WebSocket upgrade.
    """

    type: Literal['basic', 'bearer']
    username: NotRequired[str | None]
    password: NotRequired[str | None]
    token: NotRequired[str | None]
