# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class StartAssistantCallFields(TypedDict):
    """
    Fields of `assistant.start_call`.
    """

    phone_number: str
    agent_id: str
    context: NotRequired[dict[str, str]]
    from_: NotRequired[str | None]
    machine_detection: NotRequired[Literal['off', 'detect', 'hangup']]
    record: NotRequired[bool]
    timeout: NotRequired[int]
    time_limit: NotRequired[int]
    status_webhook_url: NotRequired[str | None]


class ListAssistantCallsFields(TypedDict):
    """
    Fields of `assistant.list_calls`.
    """

    status: NotRequired[Literal['queued', 'ringing', 'in-progress', 'completed', 'failed', 'no-answer', 'busy', 'voicemail'] | None]
    direction: NotRequired[Literal['inbound', 'outbound'] | None]
    agent_id: NotRequired[str | None]
    phone_number: NotRequired[str | None]
    environment: NotRequired[Literal['live', 'sandbox'] | None]
    start_date: NotRequired[str | None]
    end_date: NotRequired[str | None]
    per_page: NotRequired[int]


class GetAnalyticsFields(TypedDict):
    """
    Fields of `assistant.get_analytics`.
    """

    start_date: NotRequired[str | None]
    end_date: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    environment: NotRequired[Literal['live', 'sandbox'] | None]
