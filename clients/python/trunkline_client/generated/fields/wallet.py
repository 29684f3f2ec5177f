# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class ListLedgerFields(TypedDict):
    """
    Fields of `wallet.list_ledger`.
    """

    kind: NotRequired[Literal['charge', 'top_up', 'number_purchase', 'number_renewal', 'number_refund'] | None]
    start_date: NotRequired[str | None]
    end_date: NotRequired[str | None]
    per_page: NotRequired[int]
