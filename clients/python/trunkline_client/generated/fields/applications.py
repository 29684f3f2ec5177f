# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from . import shared


class CreateApplicationFields(TypedDict):
    """
    Fields of `applications.create`.
    """

    sample_rate: NotRequired[int | None]
    stream_protocol: NotRequired[str | None]
    encoding: NotRequired[str | None]
    custom_parameters: NotRequired[dict[str, str] | None]
    stream_auth: NotRequired[shared.StreamAuth | None]
    stream_track: NotRequired[str | None]
    stream_max_retries: NotRequired[int | None]
    name: str
    target: Literal['voice_agent', 'webhook', 'media_stream', 'model', 'forward']
    stream_url: NotRequired[str | None]
    forward_to: NotRequired[str | None]
    caller_id: NotRequired[str | None]
    timeout: NotRequired[int | None]
    webhook_url: NotRequired[str | None]
    webhook_method: NotRequired[str | None]
    webhook_format: NotRequired[str | None]
    fallback_url: NotRequired[str | None]
    status_webhook_url: NotRequired[str | None]
    status_webhook_events: NotRequired[list[str] | None]
    agent_id: NotRequired[str | None]
    workspace_id: NotRequired[str | None]
    record_all_calls: NotRequired[bool]
    transcribe: NotRequired[bool | None]
    transcription_language: NotRequired[str | None]
    model: NotRequired[shared.ModelFields | None]


class ListApplicationsFields(TypedDict):
    """
    Fields of `applications.list`.
    """

    per_page: NotRequired[int]


class UpdateApplicationFields(TypedDict):
    """
    Fields of `applications.update`.
    """

    sample_rate: NotRequired[int | None]
    stream_protocol: NotRequired[str | None]
    encoding: NotRequired[str | None]
    custom_parameters: NotRequired[dict[str, str] | None]
    stream_auth: NotRequired[shared.StreamAuth | None]
    stream_track: NotRequired[str | None]
    stream_max_retries: NotRequired[int | None]
    name: NotRequired[str]
    target: NotRequired[Literal['voice_agent', 'webhook', 'media_stream', 'model', 'forward']]
    stream_url: NotRequired[str | None]
    forward_to: NotRequired[str | None]
    caller_id: NotRequired[str | None]
    timeout: NotRequired[int | None]
    webhook_url: NotRequired[str | None]
    webhook_method: NotRequired[str | None]
    webhook_format: NotRequired[str | None]
    fallback_url: NotRequired[str | None]
    status_webhook_url: NotRequired[str | None]
    status_webhook_events: NotRequired[list[str] | None]
    agent_id: NotRequired[str | None]
    workspace_id: NotRequired[str | None]
    record_all_calls: NotRequired[bool]
    transcribe: NotRequired[bool | None]
    transcription_language: NotRequired[str | None]
    model: NotRequired[shared.ModelFields | None]
