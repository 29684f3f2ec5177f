"""Prepaid money, as the routes use it."""

from __future__ import annotations

from typing import Protocol

from callcontrol.models import LedgerEntry, LedgerFilter, Page, Position, Wallet

__all__ = ["Wallets"]


class Wallets(Protocol):
    """Prepaid money; see ``callcontrol.wallet.aio.WalletService``."""

    async def wallet(self, account_sid: str) -> Wallet:
        """Balance of the account, its reserved amount, and the cost of its calls in this hour."""

    async def spend_limit(self, account_sid: str) -> int | None:
        """Maximum cost of the account's calls per hour, in paise; None without a limit."""

    async def ledger(
        self,
        account_sid: str,
        page: int,
        per_page: int,
        query: LedgerFilter,
        *,
        after: Position | None = None,
    ) -> Page[LedgerEntry]:
        """Entries of the account's ledger, newest first; with ``after``, those behind that position."""
