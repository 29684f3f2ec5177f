# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class CreateAssistantWebhookFields(TypedDict):
    """
    Fields of `assistant_webhooks.create`.
    """

    url: str
    events: list[Literal['call.started', 'call.answered', 'call.completed', 'call.transferred', 'transcript.ready', 'agent.updated', 'error.occurred']]
    secret: NotRequired[str | None]
    description: NotRequired[str | None]


class UpdateAssistantWebhookFields(TypedDict):
    """
    Fields of `assistant_webhooks.update`.
    """

    url: NotRequired[str]
    events: NotRequired[list[Literal['call.started', 'call.answered', 'call.completed', 'call.transferred', 'transcript.ready', 'agent.updated', 'error.occurred']]]
    secret: NotRequired[str | None]
    description: NotRequired[str | None]
    is_active: NotRequired[bool]


class ListAssistantDeliveriesFields(TypedDict):
    """
    Fields of `assistant_webhooks.list_deliveries`.
    """

    limit: NotRequired[int]


class ReplayFailedAssistantDeliveriesFields(TypedDict):
    """
    Fields of `assistant_webhooks.replay_failed_deliveries`.
    """

    status: NotRequired[Literal['failed']]
    since: NotRequired[str | None]
    until: NotRequired[str | None]
