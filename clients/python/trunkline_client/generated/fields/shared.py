# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class ModelFields(TypedDict):
    """
    A vendor's realtime speech model as the agent of a call; see docs/api/model.md.
    """

    provider: Literal['openai', 'deepgram', 'gemini', 'elevenlabs', 'ultravox']
    model: str
    instructions: NotRequired[str | None]
    voice: NotRequired[str | None]
    greeting: NotRequired[str | None]
    language: NotRequired[str | None]
    tools: NotRequired[list[str] | None]
    api_key: NotRequired[str | None]
    key: NotRequired[str | None]
    transcription: NotRequired[str | None]
    url: NotRequired[str | None]
    max_retries: NotRequired[int]


class StreamAuth(TypedDict):
    """
    Credentials for the WebSocket upgrade.
    """

    type: Literal['basic', 'bearer']
    username: NotRequired[str | None]
    password: NotRequired[str | None]
    token: NotRequired[str | None]
