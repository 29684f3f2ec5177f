"""Wallets, reserves and the ledger."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

CURRENCY: Final = "INR"


@dataclass(frozen=True, slots=True)
class Wallet:
    """
    The money of an account.

    ``balance_paise`` is the sum of the ledger; ``reserved_paise`` of it is held for calls that are up.
    ``spent_paise`` is what calls were charged in the hour ``spent_hour`` of the clock, the last one in which
    there was such a charge.
    """

    account_sid: str
    balance_paise: int
    reserved_paise: int
    updated_at: datetime
    spent_hour: int = 0
    spent_paise: int = 0

    @property
    def available_paise(self) -> int:
        """What may still be reserved or charged."""
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
    One entry of an account's ledger; entries are only ever added.

    A charge has a negative amount. ``reference`` names a top-up, so that repeating it adds nothing.
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
    """What a list of ledger entries is narrowed to; ``start`` is inclusive, ``end`` exclusive."""

    kind: str | None = None
    start: datetime | None = None
    end: datetime | None = None
