# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class CreatedWebhook(Result):
    """
    A new webhook, with its secret.
    """

    id: str
    url: str
    events: list[Literal['call.started', 'call.answered', 'call.completed', 'call.transferred', 'transcript.ready', 'agent.updated', 'error.occurred']]
    description: str | None
    is_active: bool
    created_at: datetime
    updated_at: datetime
    secret: Annotated[str, Field(description='Shown this once.')]


class Webhook(Result):
    """
    A webhook; its secret is never shown again.
    """

    id: str
    url: str
    events: list[Literal['call.started', 'call.answered', 'call.completed', 'call.transferred', 'transcript.ready', 'agent.updated', 'error.occurred']]
    description: str | None
    is_active: bool
    created_at: datetime
    updated_at: datetime
