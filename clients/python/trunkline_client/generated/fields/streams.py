# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class UpdateStreamSettingsFields(TypedDict):
    """
    Fields of `streams.update_settings`.
    """

    default_stream_protocol: Literal['asterisk', 'asterisk_json', 'exotel', 'jambonz', 'plivo', 'telnyx', 'twilio', 'vobiz', 'vonage'] | None


class RotateStreamSecretFields(TypedDict):
    """
    Fields of `streams.rotate_secret`.
    """

    overlap_sec: NotRequired[int]
