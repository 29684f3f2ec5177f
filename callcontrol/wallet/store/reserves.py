"""
Reserves of calls: money is reserved before a call is dialled, and settled once, when it has ended.

The check and the taking are one conditional UPDATE, so another writer cannot part them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.clock import timestamp
from callcontrol.database.rows import ValueTable
from callcontrol.database.statements import (
    Given,
    SetStatement,
    Statement,
    insert_into,
    insert_new,
    to_micros,
)
from callcontrol.database.tables.wallet import ledger, reserves, wallets
from callcontrol.errors import DomainError, InsufficientBalance, NotFound, SpendLimitReached
from callcontrol.models import Reserve
from callcontrol.wallet.money import HOUR_MICROS, end_of_hour
from callcontrol.wallet.store import at_once, clauses, limits
from callcontrol.wallet.store.ledger import (
    AMOUNT,
    TAKE,
    available,
    enter_charges,
    short_of,
    spend_limit,
)

_CALL: Final = reserves.c.call_sid == sa.bindparam("call_sid")


def _of_many(update: Callable[[Given], sa.Update], *numbers: str) -> SetStatement:
    """Return a statement that updates a wallet for each row, and returns the accounts of these wallets."""
    columns: list[sa.Column[Any]] = [sa.Column("account_sid", sa.Text)]
    columns += [sa.Column(name, sa.BigInteger) for name in ("amount_paise", "now", "hour", *numbers)]
    return SetStatement(
        columns, lambda rows: Statement(update(Given.each(columns, rows)).returning(wallets.c.account_sid))
    )


_HOLD: Final = Statement(clauses.holding(Given()))
_HOLD_EACH: Final = _of_many(clauses.holding)
_HOLD_WITHIN: Final = Statement(clauses.holding_within(Given()))
_HOLD_EACH_WITHIN: Final = _of_many(clauses.holding_within, "calls", "opening")
_PAYABLE: Final = Statement(sa.select(wallets.c.account_sid).where(*clauses.covered(Given())))
_SETTLE: Final = Statement(clauses.settling(Given()))
_SETTLE_EACH: Final = _of_many(clauses.settling, "charge_paise")
_OPEN: Final = insert_into(reserves, ignore_conflict=True)
_OPEN_ALL: Final = insert_new(reserves)
# FOR UPDATE locks the row on databases with row locks (SQLite omits it: it has one writer anyway), so that
# the values read stay true until they are used.
_RESERVE: Final = Statement(sa.select(reserves).where(_CALL).with_for_update())
_RAISE: Final = Statement(sa.update(reserves).where(_CALL).values(amount_paise=AMOUNT))
_CLOSE: Final = SetStatement(
    [reserves.c.call_sid],
    lambda rows: Statement(
        sa.delete(reserves)
        .where(reserves.c.call_sid.in_([row["call_sid"] for row in rows]))
        .returning(reserves.c.call_sid, reserves.c.account_sid, reserves.c.amount_paise)
    ),
)
_CHARGED: Final = Statement(
    sa.select(ledger.c.amount_paise).where(ledger.c.call_sid == sa.bindparam("call_sid"))
)

_Values = Mapping[str, Any]

_RESERVES: Final = ValueTable(reserves, Reserve, order=(reserves.c.created_at,))

open_reserves = _RESERVES.all


class Wanted(NamedTuple):
    """Money for a call, possibly 0; ``limited`` on PostgreSQL only within the account's limits of calls."""

    account_sid: str
    call_sid: str
    amount_paise: int
    now: datetime
    limited: bool = False


def reserve(
    connection: Connection, account_sid: str, call_sid: str, amount_paise: int, now: datetime
) -> DomainError | None:
    """
    Reserve money for a call, possibly 0; on failure the error is returned and nothing is written.

    An open reserve of the call stays unchanged.
    """
    return _reserve(connection, values(connection, Wanted(account_sid, call_sid, amount_paise, now)))


def reserve_all(connection: Connection, calls: Sequence[Wanted]) -> list[DomainError | None]:
    """
    Reserve money for calls; returns the error of each: of its money, or of a limit of its account.

    The outcome is that of one ``reserve`` after the other: either a wallet covers all its calls at once, or
    each is asked for.
    """
    if len(calls) == 1:
        return [_reserve(connection, values(connection, calls[0]))]
    refusals: list[DomainError | None] = [None] * len(calls)
    groups: dict[tuple[str, int, bool], list[tuple[int, _Values]]] = {}
    for place, call in enumerate(calls):
        wanted = values(connection, call)
        group_of = (wanted["account_sid"], wanted["hour"], wanted["limited"])
        groups.setdefault(group_of, []).append((place, wanted))
    held: list[_Values] = []
    alone: list[tuple[int, _Values]] = []
    covered = _hold_each(connection, [[wanted for _, wanted in group] for group in groups.values()])
    for group, is_covered in zip(groups.values(), covered, strict=True):
        if is_covered:
            held += [wanted for _, wanted in group]
        else:
            alone += group
    _open_all(connection, held)
    for place, wanted in alone:
        refusals[place] = _reserve(connection, wanted)
    return refusals


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
        return _money_refusal(connection, taken)
    _RAISE.run(connection, {"call_sid": call_sid, "amount_paise": total_paise})
    return None


def settle(connection: Connection, call_sid: str, charge_paise: int, now: datetime) -> int:
    """Charge one call as ``settle_all`` does, and return the charge."""
    return settle_all(connection, {call_sid: charge_paise}, now)[call_sid]


def settle_all(connection: Connection, charges: Mapping[str, int], now: datetime) -> dict[str, int]:
    """
    Charge calls, release the remainders of their reserves, and return the charges by call.

    A wallet pays for its calls in their order, and never more than it has. Closing a reserve also charges, so
    a call is charged once: without an open reserve nothing is charged, and the call's earlier charge is
    returned.
    """
    micros = to_micros(now)
    if connection.dialect.name != "postgresql" or not charges:
        return _settle_in_turn(connection, charges, micros)
    charged = at_once.settle(connection, charges, micros)
    left = {call_sid: paise for call_sid, paise in charges.items() if call_sid not in charged}
    return charged if not left else charged | _settle_in_turn(connection, left, micros)


def _settle_in_turn(connection: Connection, charges: Mapping[str, int], micros: int) -> dict[str, int]:
    closed = _CLOSE.all(connection, [{"call_sid": call_sid} for call_sid in charges])
    held = {row["call_sid"]: row for row in closed}
    charged: dict[str, int] = {}
    by_account: dict[str, list[_Ended]] = {}
    for call_sid, charge_paise in charges.items():
        row = held.get(call_sid)
        if row is None:
            charged[call_sid] = _charged_before(connection, call_sid)
        else:
            ended = _Ended(call_sid, row["amount_paise"], charge_paise)
            by_account.setdefault(row["account_sid"], []).append(ended)
    sums: list[_Values] = []
    entries: list[tuple[str, str, int]] = []
    for account_sid, calls in by_account.items():
        paid = _capped(connection, account_sid, calls)
        sums.append(
            {
                "account_sid": account_sid,
                "charge_paise": sum(paid.values()),
                "amount_paise": sum([call.held_paise for call in calls]),
                "now": micros,
                "hour": micros // HOUR_MICROS,
            }
        )
        charged |= paid
        entries += [(account_sid, call_sid, paise) for call_sid, paise in paid.items() if paise]
    if len(sums) == 1:
        _SETTLE.run(connection, sums[0])
    else:
        _SETTLE_EACH.all(connection, sums)
    enter_charges(connection, entries, micros)
    return charged


class _Ended(NamedTuple):
    """A call whose reserve was closed."""

    call_sid: str
    held_paise: int
    charge_paise: int


def _capped(connection: Connection, account_sid: str, calls: Sequence[_Ended]) -> dict[str, int]:
    """Charges by call that the wallet can pay, one call after the other."""
    paid = {call.call_sid: call.charge_paise for call in calls if call.charge_paise <= call.held_paise}
    if len(paid) == len(calls):
        return paid
    available_paise = available(connection, account_sid)
    for call in calls:
        most_paise = call.held_paise + available_paise
        paid[call.call_sid] = min(call.charge_paise, most_paise)
        available_paise = most_paise - paid[call.call_sid]
    return paid


def _charged_before(connection: Connection, call_sid: str) -> int:
    entry = _CHARGED.first(connection, {"call_sid": call_sid})
    return 0 if entry is None else -int(entry["amount_paise"])


def values(connection: Connection, call: Wanted) -> _Values:
    """Values that statements take of a call."""
    micros = to_micros(call.now)
    return {
        "call_sid": call.call_sid,
        "account_sid": call.account_sid,
        "amount_paise": call.amount_paise,
        "created_at": micros,
        "now": micros,
        "hour": micros // HOUR_MICROS,
        "limited": call.limited and connection.dialect.name == "postgresql",
    }


def _reserve(connection: Connection, wanted: _Values) -> DomainError | None:
    if not _hold(connection, [wanted]):
        # Nothing was reserved; a call with a reserve needs nothing either.
        open_reserve = _RESERVE.first(connection, {"call_sid": wanted["call_sid"]})
        return _refusal(connection, wanted) if open_reserve is None else None
    if _OPEN.run(connection, wanted) != 1:
        give_back(connection, wanted)
    return None


def _hold_each(connection: Connection, groups: Sequence[Sequence[_Values]]) -> list[bool]:
    """Hold the money for groups of calls, each of one account and hour; False for one that is not covered."""
    if len(groups) == 1:
        return [_hold(connection, groups[0])]
    # A statement updates a wallet once: further groups of an account are held for one by one.
    firsts: dict[str, _Values] = {}
    for group in groups:
        firsts.setdefault(group[0]["account_sid"], _sum(group))
    limited = [wanted for wanted in firsts.values() if wanted["limited"]]
    others = [wanted for wanted in firsts.values() if not wanted["limited"] and wanted["amount_paise"]]
    found = _HOLD_EACH_WITHIN.all(connection, limited) + _HOLD_EACH.all(connection, others)
    held = {row["account_sid"] for row in found}
    opening: Counter[str] = Counter()
    covered = []
    for group in groups:
        account_sid = group[0]["account_sid"]
        first = firsts.pop(account_sid, None)
        if first is None:
            is_covered = _hold(connection, group, opening[account_sid])
        else:
            is_covered = account_sid in held or not (first["limited"] or first["amount_paise"])
        opening[account_sid] += len(group) * is_covered
        covered.append(is_covered)
    return covered


def _hold(connection: Connection, calls: Sequence[_Values], opening: int = 0) -> bool:
    """
    Hold the money for calls of one account and hour; False if it is not available for all of them.

    ``opening`` other calls of the account are held for, and have no reserve yet.
    """
    wanted = _sum(calls, opening)
    if wanted["limited"]:
        return _HOLD_WITHIN.run(connection, wanted) == 1
    return not wanted["amount_paise"] or _HOLD.run(connection, wanted) == 1


def _sum(calls: Sequence[_Values], opening: int = 0) -> _Values:
    amount_paise = sum([wanted["amount_paise"] for wanted in calls])
    return {**calls[-1], "amount_paise": amount_paise, "calls": len(calls), "opening": opening}


def _open_all(connection: Connection, held: Sequence[_Values]) -> None:
    """Open the reserves of calls whose money is held; of a call that has one, the money is given back."""
    opened = {row["call_sid"] for row in _OPEN_ALL.all(connection, held)}
    for wanted in held:
        if wanted["call_sid"] in opened:
            opened.remove(wanted["call_sid"])
        else:
            give_back(connection, wanted)


def give_back(connection: Connection, wanted: _Values) -> None:
    """Return to the wallet what was held for a call that has a reserve."""
    if wanted["amount_paise"]:
        TAKE.run(connection, {**wanted, "charge_paise": 0})


def reserved_in_all(connection: Connection) -> tuple[int, int]:
    """Number of open reserves, and their sum in paise."""
    count, paise = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(reserves.c.amount_paise), 0))
    ).one()
    return int(count), int(paise)


def _refusal(connection: Connection, wanted: _Values) -> DomainError:
    """Error for a failed reservation: a limit of calls is reached, or money is short."""
    if wanted["limited"]:
        standing = limits.Standing(connection, wanted["account_sid"])
        refusal = standing.refusal()
        if refusal is None and _PAYABLE.first(connection, wanted) is not None:
            refusal = standing.rate_refusal()  # The rate has had a token again since.
        if refusal is not None:
            return refusal
    return _money_refusal(connection, wanted)


def _money_refusal(connection: Connection, wanted: _Values) -> InsufficientBalance:
    """Error for too little money, or for the spend limit of this hour."""
    account_sid, amount_paise = wanted["account_sid"], wanted["amount_paise"]
    if available(connection, account_sid) < amount_paise:
        return short_of(amount_paise)
    # If the limit was just removed, the client can repeat the request.
    limit_paise = spend_limit(connection, account_sid) or 0
    resets_at = end_of_hour(wanted["hour"])
    return SpendLimitReached(
        f"Calls of this account may cost {limit_paise / 100:.2f} INR an hour, and what was spent and is held"
        f" for calls leaves too little; try again after {resets_at:%H:%M} UTC or have the limit raised.",
        details={"limit": limit_paise / 100, "resets_at": timestamp(resets_at)},
    )
