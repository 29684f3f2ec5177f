# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime

from trunkline_client.operation import Result


class Subscription(Result):
    """
    A subscription; its secret is never shown.
    """

    id: str
    url: str
    event_types: list[str]
    has_secret: bool
    is_active: bool
    created_at: datetime
    updated_at: datetime
