"""
Prepaid wallets as the interfaces see them.

``callcontrol.wallet.store.reserves`` takes a call's reserve with its record, and settles it with its end.
"""

from datetime import timedelta
from typing import Final

from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.pages import ListQuery, Pager
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import NotFound, ValidationFailed
from callcontrol.models import LedgerEntry, LedgerFilter, Page, Position, Reserve, Wallet
from callcontrol.wallet.money import MAX_PAISE
from callcontrol.wallet.store import ledger, reserves

# Entries are written within seconds of their timestamp.
_SETTLED: Final = timedelta(minutes=10)
_ALL: Final = LedgerFilter()


class WalletService:
    """
    Money of accounts, in paise.

    Reads of money include the settlement of every call that has ended.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._pager = Pager(ledger.LISTING)

    async def balance(self, account_sid: str) -> int:
        """Balance in paise: the sum of the ledger, reserves not subtracted."""
        return (await self.wallet(account_sid)).balance_paise

    async def wallet(self, account_sid: str) -> Wallet:
        """
        Balance, reserved and available money of the account.

        Raises:
            NotFound: There is no such account.
        """
        await self._writer.flush_pending()
        found = await self._database.look_up(lambda connection: ledger.get(connection, account_sid))
        if found is None:
            raise NotFound("There is no such account.")
        return found

    async def spend_limit(self, account_sid: str) -> int | None:
        """Spend limit of the account's calls per clock hour, in paise; None without a limit."""
        return await self._database.look_up(lambda connection: ledger.spend_limit(connection, account_sid))

    async def extend(self, call_sid: str, total_paise: int) -> None:
        """
        Raise the reserve of a call to a total; a total already held changes nothing.

        Raises:
            InsufficientBalance: The difference is not available; the reserve stays as it was.
            NotFound: The call has no open reserve.
        """
        _check(total_paise)
        now = utc_now()
        await self._writer.commit(lambda connection: reserves.extend(connection, call_sid, total_paise, now))

    async def top_up(
        self, account_sid: str, amount_paise: int, *, reference: str | None = None, note: str | None = None
    ) -> int:
        """
        Add money and return the new balance; a reference already used adds nothing.

        Raises:
            NotFound: There is no such account.
            Conflict: The reference belongs to another kind of entry, or to another amount.
        """
        if amount_paise == 0:
            raise ValidationFailed.of("amount", "must be more than 0")
        _check(amount_paise)
        now = utc_now()
        return await self._writer.commit(
            lambda connection: ledger.top_up(
                connection, account_sid, amount_paise, now, reference=reference, note=note
            )
        )

    async def reserved_in_all(self) -> tuple[int, int]:
        """Number of open reserves, and their sum in paise."""
        await self._writer.flush_pending()
        return await self._database.read(reserves.reserved_in_all)

    async def open_reserves(self) -> list[Reserve]:
        """List open reserves, oldest first."""
        await self._writer.flush_pending()
        return await self._database.read(reserves.open_reserves)

    async def ledger(
        self,
        account_sid: str,
        page: int = 1,
        per_page: int = 20,
        query: LedgerFilter = _ALL,
        *,
        after: Position | None = None,
    ) -> Page[LedgerEntry]:
        """List ledger entries of the account, newest first; with ``after`` those after that position."""
        await self._writer.flush_pending()
        wanted = ListQuery(
            (account_sid, query),
            ledger.entry_conditions(account_sid, query.kind),
            query.start,
            query.end,
            _SETTLED,
        )

        return await self._database.read(
            lambda connection: self._pager.page(
                connection, wanted, ledger.entries, page=page, per_page=per_page, after=after
            )
        )

    async def ledger_sum(self, account_sid: str) -> int:
        """Sum of the account's ledger, which its balance must equal."""
        await self._writer.flush_pending()
        return await self._database.read(lambda connection: ledger.ledger_sum(connection, account_sid))


def _check(amount_paise: int) -> None:
    if not 0 <= amount_paise <= MAX_PAISE:
        raise ValidationFailed.of("amount", "must be an amount of money that is not negative")
