# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class SendCampaignFields(TypedDict):
    """
    Fields of `campaigns.send`.
    """

    templateName: str
    language: NotRequired[str | None]
    campaignName: str
    phoneNumbers: list[str]
    variables: NotRequired[dict[str, str] | None]
    sendImmediately: NotRequired[bool | None]
    scheduledFor: NotRequired[str | None]


class ListCampaignsFields(TypedDict):
    """
    Fields of `campaigns.list`.
    """

    status: NotRequired[Literal['draft', 'scheduled', 'running', 'completed', 'failed', 'cancelled'] | None]
    pageSize: NotRequired[int]
