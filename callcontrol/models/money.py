"""Wallets, reserves and the ledger."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

CURRENCY: Final = "INR"

LedgerKind = Literal["charge", "top_up", "number_purchase", "number_renewal", "number_refund"]
"""Kinds of ledger entries; ``charge`` is that of a call."""


@dataclass(frozen=True, slots=True)
class Wallet:
    """
    Money of an account.

    ``balance_paise`` is the sum of the ledger; ``reserved_paise`` of it is held for active calls.
    ``spent_paise`` is the sum charged for calls in the clock hour ``spent_hour``, the last hour with a
    settled call.
    """

    account_sid: str
    balance_paise: int
    reserved_paise: int
    updated_at: datetime
    spent_hour: int = 0
    spent_paise: int = 0

    @property
    def available_paise(self) -> int:
        """Money that may still be reserved or charged, in paise."""
        return self.balance_paise - self.reserved_paise


@dataclass(frozen=True, slots=True)
class Reserve:
    """Money held for one call until it is settled."""

    call_sid: str
    account_sid: str
    amount_paise: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """
    Entry of an account's ledger; entries are never changed or deleted.

    A charge has a negative amount. ``reference`` identifies a top-up or charge, so that it is applied once.
    """

    entry_id: int
    account_sid: str
    kind: str
    amount_paise: int
    created_at: datetime
    call_sid: str | None = None
    reference: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """Filter of a list of ledger entries; ``start`` is inclusive, ``end`` exclusive."""

    kind: str | None = None
    start: datetime | None = None
    end: datetime | None = None
