# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field
from trunkline_client.operation import Result


class AccountKey(Result):
    """
    A key; the key itself is never shown again.
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


class Contact(Result):
    """
    A contact.
    """

    id: int
    phoneNumber: str
    firstName: str | None
    lastName: str | None
    email: str | None
    customFields: dict[str, Any]
    notes: str | None
    optedOut: bool
    createdAt: datetime
    updatedAt: datetime


class Deleted(Result):
    """
    Result of a deletion.
    """

    id: int
    deleted: Literal[True]


class Delivery(Result):
    """
    Delivery of one event to the subscription's URL.
    """

    id: str
    subscription_id: str
    event_type: str
    call_sid: Annotated[str, Field(description='Empty for an event without a call.')]
    status: Literal['pending', 'retrying', 'delivered', 'failed']
    attempts: int
    max_attempts: int
    response_code: Annotated[int, Field(description='0 without a response.')]
    error: Annotated[str, Field(description='Last error; empty without one.')]
    created_at: datetime
    next_attempt_at: Annotated[
        datetime | None, Field(description='null without a further attempt.')
    ]
    delivered_at: datetime | None


class RecordingLink(Result):
    """
    Link to a recording, valid for an hour without a key.
    """

    url: Annotated[
        str,
        Field(
            description='Path and query; put the origin of the API before it, without /v1.'
        ),
    ]
    call_sid: str


class ReplayedAll(Result):
    """
    Number of deliveries that are sent again.
    """

    replayed: int
    truncated: Annotated[
        bool, Field(description='True if more are left: repeat the request.')
    ]


class ReplayedOne(Result):
    """
    Number of deliveries that are sent again.
    """

    replayed: Annotated[
        int, Field(description='1; 0 when it is being sent at this moment.')
    ]


class TestOutcome(Result):
    """
    Result of a test event.
    """

    success: bool
    status_code: Annotated[int, Field(description='0 without a response.')]
    error: Annotated[str, Field(description='Error; empty on success.')]
