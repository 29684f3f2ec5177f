# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field
from trunkline_client.operation import Result


class RecordingsMessage(Result):
    """
    A voicemail that a party left on a call.
    """

    message_sid: str
    duration_ms: int
    created_at: datetime
    recording_url: Annotated[
        str, Field(description='The path of the file; a key opens it.')
    ]
    url: Annotated[
        str,
        Field(
            description='Path and query of a link that opens it for an hour, without a key.'
        ),
    ]


class CallMessages(Result):
    """
    Voicemails of a call, oldest first, without deleted ones.
    """

    call_sid: str
    messages: list[RecordingsMessage]
