# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field
from trunkline_client.operation import Result


class LedgerEntry(Result):
    """
    One change of the balance; entries are never changed or removed.
    """

    id: int
    kind: Annotated[
        str,
        Field(
            description='charge (of a call), top_up, or number_purchase, _renewal or _refund.'
        ),
    ]
    amount: Annotated[float, Field(description='Negative for a charge.')]
    currency: str
    call_sid: Annotated[str | None, Field(description='The call that was charged.')]
    reference: Annotated[
        str | None, Field(description='Reference of a top-up or a payment.')
    ]
    note: str | None
    created_at: datetime


class Wallet(Result):
    """
    The prepaid money of an account.
    """

    account_sid: str
    balance: Annotated[float, Field(description='The sum of the ledger.')]
    reserved: Annotated[float, Field(description='Reserved for active calls.')]
    available: Annotated[
        float, Field(description='balance less reserved: available to new calls.')
    ]
    currency: str
    spent_this_hour: Annotated[
        float, Field(description='Charged for calls in the current clock hour (UTC).')
    ]
    spend_limit_per_hour: Annotated[float | None, Field(description='null: no limit.')]
    spend_resets_at: Annotated[datetime, Field(description='The end of this hour.')]
    updated_at: datetime
