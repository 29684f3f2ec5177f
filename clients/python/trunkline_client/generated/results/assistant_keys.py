# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class Key(Result):
    """
    A key; the key itself is never shown again.
    """

    id: str
    name: str | None
    environment: Literal['live', 'sandbox']
    scopes: list[str]
    prefix: Annotated[str, Field(description='How it begins, to tell keys apart.')]
    state: Literal['active', 'retiring']
    created_at: datetime
    expires_at: Annotated[
        datetime | None, Field(description='When a key that was rotated ends.')
    ]


class NewKey(Result):
    """
    A new key, with the key itself.
    """

    id: str
    name: str | None
    environment: Literal['live', 'sandbox']
    scopes: list[str]
    prefix: Annotated[str, Field(description='How it begins, to tell keys apart.')]
    state: Literal['active', 'retiring']
    created_at: datetime
    expires_at: Annotated[
        datetime | None, Field(description='When a key that was rotated ends.')
    ]
    key: Annotated[str, Field(description='Shown this once.')]


class RotatedKey(Result):
    """
    The new key that replaces an old one.
    """

    id: str
    name: str | None
    environment: Literal['live', 'sandbox']
    scopes: list[str]
    prefix: Annotated[str, Field(description='How it begins, to tell keys apart.')]
    state: Literal['active', 'retiring']
    created_at: datetime
    expires_at: Annotated[
        datetime | None, Field(description='When a key that was rotated ends.')
    ]
    key: Annotated[str, Field(description='Shown this once.')]
    replaces: Key
