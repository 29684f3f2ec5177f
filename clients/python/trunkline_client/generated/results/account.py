# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result

from . import shared


class Limits(Result):
    """
    Limits of an account.
    """

    max_calls: Annotated[int, Field(description='Calls at once.')]
    max_cps: Annotated[int, Field(description='New calls a second.')]
    requests_per_minute: Annotated[
        int | None,
        Field(
            description="Of all keys together. null: each key has the server's limit."
        ),
    ]
    assistant_requests_per_minute: Annotated[
        int | None,
        Field(description="To the voice assistant. null: the server's limit."),
    ]


class WebhookSecret(Result):
    """
    The new secret, shown this once.
    """

    webhook_secret: str
    former_secret_until: Annotated[
        datetime | None,
        Field(description='Until then the previous secret signs as well.'),
    ]


class Account(Result):
    """
    The account of the key that asks, and that key.
    """

    account_sid: str
    name: str
    kyc_complete: Annotated[bool, Field(description='true: numbers can be bought.')]
    environment: Annotated[
        Literal['live', 'sandbox'], Field(description='That of the key.')
    ]
    balance: Annotated[
        float | None,
        Field(description='As in the wallet. null: the key lacks calls.read.'),
    ]
    available: Annotated[
        float | None, Field(description='balance less what active calls reserve.')
    ]
    currency: str
    limits: Limits
    key: shared.AccountKey
    created_at: datetime
