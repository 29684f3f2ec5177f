# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, TypedDict


class CreateModelKeyFields(TypedDict):
    """
    Fields of `model_keys.create`.
    """

    name: str
    provider: Literal['openai', 'deepgram', 'gemini', 'elevenlabs', 'ultravox']
    api_key: str
