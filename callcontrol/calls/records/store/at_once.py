"""New calls as one statement, on PostgreSQL: money is held, reserves are opened and records inserted."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.functions import Execution, Function, Parameters
from callcontrol.database.statements import Given, RowsStatement, Statement, to_micros
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.wallet import reserves, wallets
from callcontrol.wallet.money import HOUR_MICROS
from callcontrol.wallet.store import clauses
from callcontrol.wallet.store.reserves import Wanted, give_back, values

Row = Mapping[str, Any]

_MONEY: Final = [sa.Column(name, sa.BigInteger) for name in ("amount_paise", "now", "hour")]


def enter(connection: Connection, wanted: Sequence[Wanted], rows: Sequence[Row]) -> set[str]:
    """
    Reserve money for calls and insert their records; returns the calls for which it was done.

    It is done for all calls of an account or for none. Nothing is done unless the calls are of one kind: each
    needs a hold, in the same hour, and within the limits of its account or none.
    """
    money = [values(connection, call) for call in wanted]
    first = money[0]
    kind = first["limited"], first["hour"]
    if any((call["limited"], call["hour"]) != kind for call in money):
        return set()
    if not first["limited"] and not all(call["amount_paise"] for call in money):
        return set()
    by_sid = {call["call_sid"]: {**row, **call} for call, row in zip(money, rows, strict=True)}
    if len(by_sid) < len(money):
        return set()
    entered: set[str] = set()
    if len(by_sid) == 1:
        one = _enter_one(clauses.holding_within if first["limited"] else clauses.holding)
        rows_entered = one.all(connection, {**by_sid[first["call_sid"]], "calls": 1, "opening": 0})
    else:
        rows_entered = (_ENTER_WITHIN if first["limited"] else _ENTER).all(connection, list(by_sid.values()))
    for found in rows_entered:
        entered.add(found["call_sid"])
        if not found["opened"]:
            give_back(connection, by_sid[found["call_sid"]])
    return entered


def execution(wanted: Wanted, row: Row) -> Execution:
    """Return a function that does as ``enter`` within the limits of the account, for one call."""
    micros = to_micros(wanted.now)
    money = {"amount_paise": wanted.amount_paise, "now": micros, "hour": micros // HOUR_MICROS}
    happened = partial(_is_entered, call_sid=row["call_sid"])
    return Execution(_ENTER_CALL, _ENTER_CALL.values({**row, **money}), 0, happened)


def _is_entered(connection: Connection, call_sid: str) -> bool:
    return connection.scalar(sa.select(sa.literal(1)).where(calls.c.call_sid == call_sid)) is not None


def _entry(given: Parameters) -> Sequence[sa.Insert | sa.Update]:
    return clauses.holding_within(given), given.into(reserves), given.into(calls)


def _entering(holding: Callable[[Given], sa.Update], given: sa.CTE) -> sa.Select[Any]:
    # Imported here: a server on SQLite does not need this dialect.
    from sqlalchemy.dialects.postgresql import insert

    summed = clauses.summed(
        given,
        "amount_paise",
        calls=sa.func.count(),
        opening=sa.literal_column("0", sa.BigInteger),
        now=sa.func.max(given.c.now),
        hour=sa.func.max(given.c.hour),
    )
    held = holding(Given(summed)).returning(wallets.c.account_sid).cte("held")
    covered = given.c.account_sid == held.c.account_sid

    def into(table: sa.Table) -> Any:
        names = [column.name for column in table.c]
        chosen = sa.select(*[given.c[name] for name in names]).where(covered)
        return insert(table).from_select(names, chosen).on_conflict_do_nothing()

    opened = into(reserves).returning(reserves.c.call_sid).cte("opened")
    recorded = into(calls).cte("recorded")
    has_reserve = given.c.call_sid.in_(sa.select(opened.c.call_sid))
    return sa.select(given.c.call_sid, has_reserve.label("opened")).where(covered).add_cte(recorded)


@lru_cache(2)
def _enter_one(holding: Callable[[Given], sa.Update]) -> Statement:
    """
    Return the statement that does as ``_entering``, for one call.

    Without a table of one row and sums over it, which take PostgreSQL longer than the rest.
    """
    from sqlalchemy.dialects.postgresql import insert  # As above.

    held = holding(Given()).returning(wallets.c.account_sid).cte("held")

    def into(table: sa.Table) -> Any:
        row = [sa.bindparam(column.name, type_=column.type) for column in table.c]
        chosen = sa.select(*row).select_from(held)
        return insert(table).from_select([column.name for column in table.c], chosen).on_conflict_do_nothing()

    opened = into(reserves).returning(reserves.c.call_sid).cte("opened")
    call_sid = sa.bindparam("call_sid", type_=sa.Text).label("call_sid")
    has_reserve = sa.exists(sa.select(opened.c.call_sid)).label("opened")
    return Statement(sa.select(call_sid, has_reserve).select_from(held).add_cte(into(calls).cte("recorded")))


_ENTER_CALL: Final = Function("enter_call", [*calls.c, *_MONEY], _entry, {"calls": 1, "opening": 0})
_ENTER: Final = RowsStatement([*calls.c, *_MONEY], partial(_entering, clauses.holding))
_ENTER_WITHIN: Final = RowsStatement([*calls.c, *_MONEY], partial(_entering, clauses.holding_within))
