# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class SendOtpFields(TypedDict):
    """
    Fields of `otp.send`.
    """

    to: str
    otp: NotRequired[str | None]
    length: NotRequired[int]
    language: NotRequired[str]
    repeat: NotRequired[int]
    template: NotRequired[str | None]
    from_: NotRequired[str | None]
    ttl_sec: NotRequired[int]
    status_webhook_url: NotRequired[str | None]
    reference: NotRequired[str | None]


class ListOtpsFields(TypedDict):
    """
    Fields of `otp.list`.
    """

    status: NotRequired[Literal['queued', 'initiated', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'failed', 'canceled'] | None]
    to: NotRequired[str | None]
    reference: NotRequired[str | None]
    start_date: NotRequired[str | None]
    end_date: NotRequired[str | None]
    per_page: NotRequired[int]


class OtpStatsFields(TypedDict):
    """
    Fields of `otp.stats`.
    """

    start_date: NotRequired[str | None]
    end_date: NotRequired[str | None]


class VerifyOtpFields(TypedDict):
    """
    Fields of `otp.verify`.
    """

    otp: str
