# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class CreateWebhookEndpointFields(TypedDict):
    """
    Fields of `webhook_endpoints.create`.
    """

    url: str
    events: list[Literal['message.sent', 'message.delivered', 'message.read', 'message.failed', 'message.received', 'template.approved', 'template.rejected', 'campaign.completed']]
    secret: NotRequired[str | None]
    description: NotRequired[str | None]


class UpdateWebhookEndpointFields(TypedDict):
    """
    Fields of `webhook_endpoints.update`.
    """

    url: NotRequired[str]
    events: NotRequired[list[Literal['message.sent', 'message.delivered', 'message.read', 'message.failed', 'message.received', 'template.approved', 'template.rejected', 'campaign.completed']]]
    secret: NotRequired[str]
    description: NotRequired[str | None]
    isActive: NotRequired[bool]


class ListEndpointDeliveriesFields(TypedDict):
    """
    Fields of `webhook_endpoints.list_deliveries`.
    """

    limit: NotRequired[int]


class ReplayFailedEndpointDeliveriesFields(TypedDict):
    """
    Fields of `webhook_endpoints.replay_failed_deliveries`.
    """

    status: NotRequired[Literal['failed']]
    since: NotRequired[str | None]
    until: NotRequired[str | None]
