# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from . import shared


class SearchDidsFields(TypedDict):
    """
    Fields of `numbers.search_dids`.
    """

    region: NotRequired[str | None]
    number_type: NotRequired[Literal['mobile', 'local', 'toll_free', '140_series', '160_series'] | None]
    contains: NotRequired[str | None]
    per_page: NotRequired[int]


class PurchaseDidFields(TypedDict):
    """
    Fields of `numbers.purchase_did`.
    """

    live_ref: str
    friendly_name: NotRequired[str | None]
    months: NotRequired[int]
    acknowledged_total: NotRequired[float | None]


class ListNumbersFields(TypedDict):
    """
    Fields of `numbers.list`.
    """

    status: NotRequired[Literal['active', 'suspended', 'released'] | None]
    number_type: NotRequired[Literal['mobile', 'local', 'toll_free', '140_series', '160_series'] | None]
    region: NotRequired[str | None]
    per_page: NotRequired[int]


class ChangeNumberFields(TypedDict):
    """
    Fields of `numbers.change`.
    """

    friendly_name: str | None


class DeregisterNumberFields(TypedDict):
    """
    Fields of `numbers.deregister`.
    """

    force: NotRequired[bool]


class BindNumberFields(TypedDict):
    """
    Fields of `numbers.bind`.
    """

    sample_rate: NotRequired[int | None]
    stream_protocol: NotRequired[str | None]
    encoding: NotRequired[str | None]
    custom_parameters: NotRequired[dict[str, str] | None]
    stream_auth: NotRequired[shared.StreamAuth | None]
    stream_track: NotRequired[str | None]
    stream_max_retries: NotRequired[int | None]
    target: str
    force: NotRequired[bool]
    stream_url: NotRequired[str | None]
    forward_to: NotRequired[str | None]
    caller_id: NotRequired[str | None]
    timeout: NotRequired[int | None]
    record: NotRequired[bool | None]
    transcribe: NotRequired[bool | None]
    transcription_language: NotRequired[str | None]
    webhook_url: NotRequired[str | None]
    webhook_method: NotRequired[str | None]
    webhook_format: NotRequired[str | None]
    fallback_url: NotRequired[str | None]
    status_webhook_url: NotRequired[str | None]
    status_webhook_events: NotRequired[list[str] | None]
    agent_id: NotRequired[str | None]
    workspace_id: NotRequired[str | None]
    language: NotRequired[str | None]
    identity: NotRequired[str | None]
    model: NotRequired[shared.ModelFields | None]
