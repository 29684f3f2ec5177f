# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field
from trunkline_client.operation import Result


class MessageError(Result):
    """
    Reason of a failed message.
    """

    code: str
    message: str | None


class SentMessage(Result):
    """
    A message that was accepted for delivery.
    """

    success: Literal[True]
    messageId: str
    to: str
    type: Literal['text', 'template', 'media', 'buttons', 'list']
    timestamp: datetime


class MessagesMessage(Result):
    """
    A message in either direction and its delivery state.
    """

    messageId: str
    direction: Literal['outbound', 'inbound']
    from_: Annotated[str, Field(alias='from')]
    to: str
    type: Literal['text', 'template', 'media', 'buttons', 'list']
    status: Literal['queued', 'sent', 'delivered', 'read', 'failed', 'received']
    campaignId: int | None
    text: str | None
    template: dict[str, Any] | None
    media: dict[str, Any] | None
    interactive: dict[str, Any] | None
    error: MessageError | None
    createdAt: datetime
    sentAt: datetime | None
    deliveredAt: datetime | None
    readAt: datetime | None
    failedAt: datetime | None
