"""Clauses of the statements that hold the money of calls and settle it."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.statements import Given
from callcontrol.database.tables.accounts import accounts
from callcontrol.database.tables.wallet import wallets
from callcontrol.wallet.store import limits
from callcontrol.wallet.store.ledger import taking

_UNLIMITED_PAISE: Final = 2**62


def _spent(given: Given) -> sa.ColumnElement[int]:
    """Charges of calls in this clock hour. The clock of another process may be slightly ahead."""
    return sa.case((wallets.c.spent_hour >= given.whole("hour"), wallets.c.spent_paise), else_=0)


def covered(given: Given) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions of a wallet that covers an amount."""
    limit = (
        sa.select(accounts.c.max_spend_paise_per_hour)
        .where(accounts.c.account_sid == given.text("account_sid"))
        .correlate(given.rows)
        .scalar_subquery()
    )
    return _covered(given, limit)


def _covered(given: Given, limit: sa.ColumnElement[int | None]) -> tuple[sa.ColumnElement[bool], ...]:
    amount = given.whole("amount_paise")
    return (
        wallets.c.account_sid == given.text("account_sid"),
        wallets.c.balance_paise - wallets.c.reserved_paise >= amount,
        # Reserved money may be spent in this hour, so it counts against the limit.
        sa.func.coalesce(limit, _UNLIMITED_PAISE) >= _spent(given) + wallets.c.reserved_paise + amount,
    )


def holding(given: Given) -> sa.Update:
    """Hold ``amount_paise`` of a wallet that covers it."""
    return _holding(given).where(*covered(given))


def _holding(given: Given) -> sa.Update:
    held = wallets.c.reserved_paise + given.whole("amount_paise")
    return sa.update(wallets).values(reserved_paise=held, updated_at=given.whole("now"))


def holding_within(given: Given) -> sa.Update:
    """As ``holding``, within the limits of the account."""
    # The account is joined for its limits; its limit of money is one of them.
    money = _covered(given, accounts.c.max_spend_paise_per_hour)
    return _holding(given).where(*money, *limits.within(given)).values(paced_until=limits.paced(given))


def settling(given: Given) -> sa.Update:
    """Subtract ``charge_paise`` and a reserve of ``amount_paise``, and count the charge in its hour."""
    hour = given.whole("hour")
    return taking(given).values(
        spent_paise=_spent(given) + given.whole("charge_paise"),
        spent_hour=sa.case((wallets.c.spent_hour > hour, wallets.c.spent_hour), else_=hour),
    )


def summed(table: sa.CTE, *sums: str, **values: sa.ColumnElement[int]) -> sa.CTE:
    """Rows of a table by account: the sums of columns, and further values."""
    totals = [sa.cast(sa.func.sum(table.c[name]), sa.BigInteger).label(name) for name in sums]
    others = [value.label(name) for name, value in values.items()]
    return sa.select(table.c.account_sid, *totals, *others).group_by(table.c.account_sid).cte("summed")
