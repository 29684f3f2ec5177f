# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field
from trunkline_client.operation import Result


class AppKey(Result):
    """
    An app key; the key itself is never shown again.
    """

    id: str
    name: str | None
    tools: Annotated[
        list[str] | None,
        Field(description='The tools that it opens; null: all of them.'),
    ]
    prefix: Annotated[str, Field(description='How it begins, to tell keys apart.')]
    created_at: datetime
    expires_at: Annotated[
        datetime | None, Field(description='When a key that was rotated ends.')
    ]


class NewAppKey(Result):
    """
    A new app key, with the key itself.
    """

    id: str
    name: str | None
    tools: Annotated[
        list[str] | None,
        Field(description='The tools that it opens; null: all of them.'),
    ]
    prefix: Annotated[str, Field(description='How it begins, to tell keys apart.')]
    created_at: datetime
    expires_at: Annotated[
        datetime | None, Field(description='When a key that was rotated ends.')
    ]
    key: Annotated[str, Field(description='Shown this once.')]
