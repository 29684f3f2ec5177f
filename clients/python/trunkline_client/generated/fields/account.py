# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import NotRequired, TypedDict


class RotateWebhookSecretFields(TypedDict):
    """
    Fields of `account.rotate_webhook_secret`.
    """

    overlap_seconds: NotRequired[int]
