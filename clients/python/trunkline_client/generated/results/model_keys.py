# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Literal

from trunkline_client.operation import Result


class ModelKey(Result):
    """
    A stored key of a vendor, without the key itself.
    """

    key_id: str
    name: str
    provider: Literal['openai', 'deepgram', 'gemini', 'elevenlabs', 'ultravox']
    created_at: datetime
