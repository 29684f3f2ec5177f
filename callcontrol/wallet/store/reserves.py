"""
Reserves of calls: money is reserved before a call is dialled, and settled once, when it has ended.

The check and the taking are one conditional UPDATE, so another writer cannot part them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.rows import ValueTable
from callcontrol.database.statements import Statement, insert_into, to_micros
from callcontrol.database.tables.accounts import accounts
from callcontrol.database.tables.wallet import ledger, reserves, wallets
from callcontrol.errors import InsufficientBalance, NotFound, SpendLimitReached
from callcontrol.models import Reserve
from callcontrol.wallet.money import HOUR_MICROS, end_of_hour
from callcontrol.wallet.store.ledger import (
    ACCOUNT,
    AMOUNT,
    CHARGE,
    NOW,
    TAKE,
    TAKING,
    available,
    enter,
    short_of,
    spend_limit,
)

_UNLIMITED_PAISE: Final = 2**62

_CALL: Final = reserves.c.call_sid == sa.bindparam("call_sid")
_HOUR: Final = sa.bindparam("hour", type_=sa.BigInteger)

# Charges of calls in this clock hour. The clock of another process may be slightly ahead.
_SPENT: Final = sa.case((wallets.c.spent_hour >= _HOUR, wallets.c.spent_paise), else_=0)
_LIMIT: Final = (
    sa.select(accounts.c.max_spend_paise_per_hour)
    .where(accounts.c.account_sid == sa.bindparam("account_sid"))
    .scalar_subquery()
)
_HOLD: Final = Statement(
    sa.update(wallets)
    .where(
        ACCOUNT,
        wallets.c.balance_paise - wallets.c.reserved_paise >= AMOUNT,
        # Reserved money may be spent in this hour, so it counts against the limit.
        sa.func.coalesce(_LIMIT, _UNLIMITED_PAISE) >= _SPENT + wallets.c.reserved_paise + AMOUNT,
    )
    .values(reserved_paise=wallets.c.reserved_paise + AMOUNT, updated_at=NOW)
)
_OPEN: Final = insert_into(reserves, ignore_conflict=True)
# FOR UPDATE locks the row on databases with row locks (SQLite omits it: it has one writer anyway), so that
# the values read stay true until they are used.
_RESERVE: Final = Statement(sa.select(reserves).where(_CALL).with_for_update())
_RAISE: Final = Statement(sa.update(reserves).where(_CALL).values(amount_paise=AMOUNT))
_CLOSE: Final = Statement(
    sa.delete(reserves).where(_CALL).returning(reserves.c.account_sid, reserves.c.amount_paise)
)
_CHARGED: Final = Statement(
    sa.select(ledger.c.amount_paise).where(ledger.c.call_sid == sa.bindparam("call_sid"))
)
_SETTLE: Final = Statement(
    TAKING.values(
        spent_paise=_SPENT + CHARGE,
        spent_hour=sa.case((wallets.c.spent_hour > _HOUR, wallets.c.spent_hour), else_=_HOUR),
    )
)

_RESERVES: Final = ValueTable(reserves, Reserve, order=(reserves.c.created_at,))

open_reserves = _RESERVES.all


def reserve(
    connection: Connection, account_sid: str, call_sid: str, amount_paise: int, now: datetime
) -> InsufficientBalance | None:
    """
    Reserve money for a call, possibly 0; on failure the error is returned and nothing is written.

    An open reserve of the call stays unchanged.
    """
    micros = to_micros(now)
    wanted = {
        "call_sid": call_sid,
        "account_sid": account_sid,
        "amount_paise": amount_paise,
        "created_at": micros,
        "now": micros,
        "hour": micros // HOUR_MICROS,
    }
    if amount_paise and _HOLD.run(connection, wanted) != 1:
        # Nothing was reserved; a call with a reserve needs nothing either.
        held = _RESERVE.first(connection, {"call_sid": call_sid})
        return _refusal(connection, wanted) if held is None else None
    if _OPEN.run(connection, wanted) != 1 and amount_paise:
        TAKE.run(connection, {**wanted, "charge_paise": 0})
    return None


def extend(
    connection: Connection, call_sid: str, total_paise: int, now: datetime
) -> InsufficientBalance | NotFound | None:
    """Raise a reserve to a total; on failure the error is returned and nothing is written."""
    held = _RESERVE.first(connection, {"call_sid": call_sid})
    if held is None:
        return NotFound("The call has no open reserve; reserve before extending.")
    more_paise = total_paise - held["amount_paise"]
    if more_paise <= 0:
        return None
    micros = to_micros(now)
    taken = {
        "account_sid": held["account_sid"],
        "amount_paise": more_paise,
        "now": micros,
        "hour": micros // HOUR_MICROS,
    }
    if _HOLD.run(connection, taken) != 1:
        return _refusal(connection, taken)
    _RAISE.run(connection, {"call_sid": call_sid, "amount_paise": total_paise})
    return None


def settle(connection: Connection, call_sid: str, charge_paise: int, now: datetime) -> int:
    """
    Charge a call, release the remainder of its reserve, and return the charge.

    Closing the reserve also charges, so a call is charged once: without an open reserve nothing is charged,
    and the call's earlier charge is returned.
    """
    held = _CLOSE.first(connection, {"call_sid": call_sid})
    if held is None:
        entry = _CHARGED.first(connection, {"call_sid": call_sid})
        return 0 if entry is None else -int(entry["amount_paise"])
    account_sid, held_paise = held["account_sid"], held["amount_paise"]
    if charge_paise > held_paise:
        charge_paise = min(charge_paise, held_paise + available(connection, account_sid))
    micros = to_micros(now)
    _SETTLE.run(
        connection,
        {
            "account_sid": account_sid,
            "charge_paise": charge_paise,
            "amount_paise": held_paise,
            "now": micros,
            "hour": micros // HOUR_MICROS,
        },
    )
    if charge_paise:
        enter(connection, account_sid, "charge", -charge_paise, micros, call_sid=call_sid)
    return charge_paise


def reserved_in_all(connection: Connection) -> tuple[int, int]:
    """Number of open reserves, and their sum in paise."""
    count, paise = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(reserves.c.amount_paise), 0))
    ).one()
    return int(count), int(paise)


def _refusal(connection: Connection, wanted: Mapping[str, Any]) -> InsufficientBalance:
    """Error for a failed reservation: too little money, or the spend limit of this hour is reached."""
    account_sid, amount_paise = wanted["account_sid"], wanted["amount_paise"]
    if available(connection, account_sid) < amount_paise:
        return short_of(amount_paise)
    # If the limit was just removed, the client can repeat the request.
    limit_paise = spend_limit(connection, account_sid) or 0
    resets_at = end_of_hour(wanted["hour"])
    return SpendLimitReached(
        f"Calls of this account may cost {limit_paise / 100:.2f} INR an hour, and what was spent and is held"
        f" for calls leaves too little; try again after {resets_at:%H:%M} UTC or have the limit raised.",
        details={"limit": limit_paise / 100, "resets_at": f"{resets_at:%Y-%m-%dT%H:%M:%SZ}"},
    )
