# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field
from trunkline_client.operation import Result


class StreamSecret(Result):
    """
    The new secret, shown once.
    """

    stream_secret: str
    stream_secret_made_at: datetime
    former_secret_until: datetime | None


class StreamSettings(Result):
    """
    The settings; the secret itself is never shown again.
    """

    default_stream_protocol: Annotated[
        str | None, Field(description="null: the server's default.")
    ]
    has_stream_secret: Annotated[
        bool, Field(description='false: requests are signed with the webhook secret.')
    ]
    stream_secret_made_at: datetime | None
    former_secret_until: Annotated[
        datetime | None,
        Field(
            description='Until then requests are also signed with the previous secret.'
        ),
    ]
