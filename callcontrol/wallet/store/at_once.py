"""Settlement of calls as one statement, on PostgreSQL."""

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import Given, RowsStatement
from callcontrol.database.tables.wallet import ledger, reserves, wallets
from callcontrol.wallet.money import HOUR_MICROS
from callcontrol.wallet.store import clauses


def settle(connection: Connection, charges: Mapping[str, int], micros: int) -> dict[str, int]:
    """
    Charge calls that cost no more than was held for them; returns the charges of these.

    Left alone are all calls of an account of which one cost more, and calls without a reserve.
    """
    rows = [
        {
            "call_sid": call_sid,
            "charge_paise": charge_paise,
            "place": place,
            "now": micros,
            "hour": micros // HOUR_MICROS,
        }
        for place, (call_sid, charge_paise) in enumerate(charges.items())
    ]
    return {row["call_sid"]: row["charge_paise"] for row in _SETTLE.all(connection, rows)}


def _settling(given: sa.CTE) -> sa.Select[Any]:
    mine = reserves.c.call_sid == given.c.call_sid
    short = sa.select(reserves.c.account_sid).where(mine, given.c.charge_paise > reserves.c.amount_paise)
    closed = (
        sa.delete(reserves)
        .where(mine, reserves.c.account_sid.not_in(short.correlate(None)))
        .returning(reserves.c.account_sid, reserves.c.amount_paise, *given.c)
        .cte("closed")
    )
    summed = clauses.summed(
        closed,
        "amount_paise",
        "charge_paise",
        now=sa.func.max(closed.c.now),
        hour=sa.func.max(closed.c.hour),
    )
    taken = clauses.settling(Given(summed)).returning(wallets.c.account_sid).cte("taken")
    entries = (
        sa.select(
            closed.c.account_sid,
            sa.literal_column("'charge'"),
            -closed.c.charge_paise,
            closed.c.call_sid,
            closed.c.now,
        )
        .where(closed.c.charge_paise != 0)
        .order_by(closed.c.place)
    )
    entered = (
        sa.insert(ledger)
        .from_select(["account_sid", "kind", "amount_paise", "call_sid", "created_at"], entries)
        .returning(ledger.c.entry_id)
        .cte("entered")
    )
    return sa.select(closed.c.call_sid, closed.c.charge_paise).add_cte(taken, entered)


_SETTLE: Final = RowsStatement(
    [
        reserves.c.call_sid,
        *(sa.Column(name, sa.BigInteger) for name in ("charge_paise", "place", "now", "hour")),
    ],
    _settling,
)
