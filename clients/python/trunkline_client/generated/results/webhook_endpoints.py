# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class CreatedWebhookEndpoint(Result):
    """
    A new webhook endpoint, with its secret.
    """

    id: int
    url: str
    events: list[Literal['message.sent', 'message.delivered', 'message.read', 'message.failed', 'message.received', 'template.approved', 'template.rejected', 'campaign.completed']]
    description: str | None
    isActive: bool
    createdAt: datetime
    updatedAt: datetime
    secret: Annotated[str, Field(description='Shown this once.')]


class EndpointDelivery(Result):
    """
    Delivery of one event to the endpoint's URL.
    """

    id: Annotated[
        str, Field(description='The webhook-id of the request, and the id in its body.')
    ]
    endpointId: int
    event: Literal['message.sent', 'message.delivered', 'message.read', 'message.failed', 'message.received', 'template.approved', 'template.rejected', 'campaign.completed']
    messageId: Annotated[
        str | None, Field(description='null for an event without a message.')
    ]
    status: Literal['pending', 'retrying', 'delivered', 'failed']
    attempts: int
    maxAttempts: int
    responseCode: Annotated[int, Field(description='0 without a response.')]
    error: Annotated[str, Field(description='Last error; empty without one.')]
    createdAt: datetime
    nextAttemptAt: Annotated[
        datetime | None, Field(description='null without a further attempt.')
    ]
    deliveredAt: datetime | None


class EndpointTestOutcome(Result):
    """
    Result of a test event.
    """

    success: bool
    statusCode: Annotated[int, Field(description='0 without a response.')]
    error: Annotated[str, Field(description='Error; empty on success.')]


class WebhookEndpoint(Result):
    """
    A webhook endpoint; its secret is never shown again.
    """

    id: int
    url: str
    events: list[Literal['message.sent', 'message.delivered', 'message.read', 'message.failed', 'message.received', 'template.approved', 'template.rejected', 'campaign.completed']]
    description: str | None
    isActive: bool
    createdAt: datetime
    updatedAt: datetime
