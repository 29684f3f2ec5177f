# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class Channel(Result):
    """
    Channel from which the account sends messages.
    """

    number: str
    displayName: str
    isConnected: bool
    messagesPerSecond: int
    isSandbox: Annotated[
        bool, Field(description='Whether the number is that of the sandbox.')
    ]


class Template(Result):
    """
    A template: PENDING until the network has reviewed it; only an APPROVED one can be sent.
    """

    id: int
    name: str
    category: Literal['MARKETING', 'UTILITY', 'AUTHENTICATION']
    language: str
    body: str
    variables: Annotated[int, Field(description='How many the body has.')]
    status: Literal['PENDING', 'APPROVED', 'REJECTED', 'PAUSED']
    rejectionReason: Annotated[
        str | None, Field(description='Reason for REJECTED or PAUSED.')
    ]
    submitted: Annotated[
        bool, Field(description='Submitted to the network; false: it will be shortly.')
    ]
    createdAt: datetime
    updatedAt: Annotated[
        datetime, Field(description='When the status was last changed.')
    ]
