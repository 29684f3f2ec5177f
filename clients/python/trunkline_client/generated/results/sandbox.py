# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from trunkline_client.operation import Result


class PartyCall(Result):
    """
    A call that a sandbox party has placed.
    """

    call_sid: Annotated[
        str | None,
        Field(
            description='The inbound call; null if it did not begin within a second.'
        ),
    ]
    sip_call_id: Annotated[str, Field(description='Call-ID of its INVITE.')]
    from_: Annotated[str, Field(alias='from')]
    to: str
