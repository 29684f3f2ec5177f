# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class StartMaskedCallFields(TypedDict):
    """
    Fields of `masking.start_masked_call`.
    """

    party_a: str
    party_b: str
    max_duration_sec: NotRequired[int | None]


class CreateMaskingSessionFields(TypedDict):
    """
    Fields of `masking.create_session`.
    """

    party_a: str
    party_b: str
    masked_number: NotRequired[str | None]
    expires_in_sec: NotRequired[int]
    call_time_limit_sec: NotRequired[int | None]
    record: NotRequired[bool | None]
    geo_match: NotRequired[bool]


class ListMaskingSessionsFields(TypedDict):
    """
    Fields of `masking.list_sessions`.
    """

    status: NotRequired[Literal['active', 'expired', 'closed'] | None]
    party: NotRequired[str | None]
    masked_number: NotRequired[str | None]
    per_page: NotRequired[int]


class ChangeMaskingSessionFields(TypedDict):
    """
    Fields of `masking.change_session`.
    """

    expires_in_sec: NotRequired[int | None]
    call_time_limit_sec: NotRequired[int | None]
    record: NotRequired[bool | None]


class ListMaskedNumbersFields(TypedDict):
    """
    Fields of `masking.list_masked_numbers`.
    """

    per_page: NotRequired[int]


class EnrolMaskedNumberFields(TypedDict):
    """
    Fields of `masking.enrol_masked_number`.
    """

    number: str
    language: NotRequired[str | None]
    force: NotRequired[bool]


class WithdrawMaskedNumberFields(TypedDict):
    """
    Fields of `masking.withdraw_masked_number`.
    """

    force: NotRequired[bool]


class ListMaskedCallsFields(TypedDict):
    """
    Fields of `masking.list_masked_calls`.
    """

    status: NotRequired[Literal['initiated', 'a_ringing', 'a_answered', 'b_ringing', 'in-progress', 'completed', 'failed', 'no-answer'] | None]
    direction: NotRequired[Literal['click_to_call', 'inbound'] | None]
    party: NotRequired[str | None]
    session_id: NotRequired[str | None]
    start_date: NotRequired[str | None]
    end_date: NotRequired[str | None]
    per_page: NotRequired[int]


class MaskingStatsFields(TypedDict):
    """
    Fields of `masking.stats`.
    """

    start_date: NotRequired[str | None]
    end_date: NotRequired[str | None]


class UpdateMaskingSettingsFields(TypedDict):
    """
    Fields of `masking.update_settings`.
    """

    webhook_url: NotRequired[str | None]
    webhook_secret: NotRequired[str | None]
    webhook_active: NotRequired[bool]
    routing_url: NotRequired[str | None]
    record_calls: NotRequired[bool]


class ListMaskingDeliveriesFields(TypedDict):
    """
    Fields of `masking.list_deliveries`.
    """

    limit: NotRequired[int]


class ReplayFailedMaskingDeliveriesFields(TypedDict):
    """
    Fields of `masking.replay_failed_deliveries`.
    """

    status: NotRequired[Literal['failed']]
    since: NotRequired[str | None]
    until: NotRequired[str | None]
