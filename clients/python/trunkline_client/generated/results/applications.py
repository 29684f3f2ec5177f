# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class ModelObject(Result):
    """
    A vendor's model as the target of calls; its key is never shown.
    """

    provider: Literal['openai', 'deepgram', 'gemini', 'elevenlabs', 'ultravox']
    model: str
    instructions: str | None = None
    voice: str | None = None
    greeting: str | None = None
    language: str | None = None
    tools: list[str] | None = None
    key: Annotated[str | None, Field(description='Name of the stored key.')] = None
    transcription: str | None = None
    url: str | None = None
    max_retries: int | None = None


class Application(Result):
    """
    An application; credentials of its stream are never shown.
    """

    app_sid: str
    sid: Annotated[str, Field(description='Alias of app_sid.')]
    name: str
    target: Literal['voice_agent', 'webhook', 'media_stream', 'model', 'forward']
    webhook_url: str | None
    webhook_method: str | None
    webhook_format: str | None
    fallback_url: str | None
    status_webhook_url: str | None
    status_webhook_events: list[str] | None
    stream_url: str | None
    sample_rate: int | None
    stream_protocol: str | None
    encoding: str | None
    custom_parameters: dict[str, str] | None
    stream_track: str | None
    stream_max_retries: int | None
    agent_id: str | None
    workspace_id: str | None
    forward_to: str | None
    caller_id: str | None
    timeout: int | None
    record_all_calls: bool
    transcribe: bool | None
    transcription_language: str | None
    model: ModelObject | None
    created_at: datetime
    updated_at: datetime
