# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class CreateSubscriptionFields(TypedDict):
    """
    Fields of `subscriptions.create`.
    """

    url: str
    event_types: list[Literal['call.missed']]
    secret: NotRequired[str | None]


class UpdateSubscriptionFields(TypedDict):
    """
    Fields of `subscriptions.update`.
    """

    url: NotRequired[str]
    event_types: NotRequired[list[Literal['call.missed']]]
    secret: NotRequired[str | None]
    is_active: NotRequired[bool]


class ListDeliveriesFields(TypedDict):
    """
    Fields of `subscriptions.list_deliveries`.
    """

    limit: NotRequired[int]


class ReplayFailedFields(TypedDict):
    """
    Fields of `subscriptions.replay_failed`.
    """

    status: NotRequired[Literal['failed']]
    since: NotRequired[str | None]
    until: NotRequired[str | None]
