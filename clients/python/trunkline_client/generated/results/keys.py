# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result

from . import shared


class NewAccountKey(Result):
    """
    A new key, with the key itself.
    """

    id: str
    service: Literal['platform', 'messaging', 'assistant', 'tools', 'admin', 'all']
    name: str | None
    environment: Literal['live', 'sandbox']
    scopes: Annotated[list[str], Field(description='*: every scope of the service.')]
    prefix: Annotated[str, Field(description='First characters of the key.')]
    current: Annotated[bool, Field(description='The key of this request.')]
    created_at: datetime
    expires_at: Annotated[
        datetime | None, Field(description='End of a key that was rotated.')
    ]
    key: Annotated[str, Field(description='Shown this once.')]


class RotatedAccountKey(Result):
    """
    The new key that replaces an old one.
    """

    id: str
    service: Literal['platform', 'messaging', 'assistant', 'tools', 'admin', 'all']
    name: str | None
    environment: Literal['live', 'sandbox']
    scopes: Annotated[list[str], Field(description='*: every scope of the service.')]
    prefix: Annotated[str, Field(description='First characters of the key.')]
    current: Annotated[bool, Field(description='The key of this request.')]
    created_at: datetime
    expires_at: Annotated[
        datetime | None, Field(description='End of a key that was rotated.')
    ]
    key: Annotated[str, Field(description='Shown this once.')]
    replaces: shared.AccountKey
