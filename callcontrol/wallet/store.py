"""
Wallets, reserves and the ledger.

Three rules keep the money right. The ledger only grows, and a wallet's balance changes by exactly the
entry that is written with it. Money is taken by one conditional UPDATE, so the check and the taking cannot
be parted by another writer. A call has one reserve, which is settled once.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.listing import Condition, Listing
from callcontrol.database.rows import ValueTable
from callcontrol.database.statements import Statement, insert_into, to_micros
from callcontrol.database.tables.accounts import accounts
from callcontrol.database.tables.wallet import ledger, reserves, wallets
from callcontrol.errors import Conflict, InsufficientBalance, NotFound, SpendLimitReached
from callcontrol.models import LedgerEntry, Reserve, Wallet
from callcontrol.wallet.money import HOUR_MICROS, end_of_hour

_UNLIMITED_PAISE: Final = 2**62

_AMOUNT: Final = sa.bindparam("amount_paise", type_=sa.BigInteger)
_CHARGE: Final = sa.bindparam("charge_paise", type_=sa.BigInteger)
_NOW: Final = sa.bindparam("now", type_=sa.BigInteger)
_ACCOUNT: Final = wallets.c.account_sid == sa.bindparam("account_sid")
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
        _ACCOUNT,
        wallets.c.balance_paise - wallets.c.reserved_paise >= _AMOUNT,
        # Reserved money may be spent in this hour, so it counts against the limit.
        sa.func.coalesce(_LIMIT, _UNLIMITED_PAISE) >= _SPENT + wallets.c.reserved_paise + _AMOUNT,
    )
    .values(reserved_paise=wallets.c.reserved_paise + _AMOUNT, updated_at=_NOW)
)
_OPEN: Final = insert_into(reserves, ignore_conflict=True)
# FOR UPDATE locks the row on databases with row locks (SQLite omits it: it has one writer anyway), so that
# the values read stay true until they are used.
_RESERVE: Final = Statement(sa.select(reserves).where(_CALL).with_for_update())
_WALLET: Final = Statement(sa.select(wallets).where(_ACCOUNT).with_for_update())
_RAISE: Final = Statement(sa.update(reserves).where(_CALL).values(amount_paise=_AMOUNT))
_CLOSE: Final = Statement(
    sa.delete(reserves).where(_CALL).returning(reserves.c.account_sid, reserves.c.amount_paise)
)
_CHARGED: Final = Statement(
    sa.select(ledger.c.amount_paise).where(ledger.c.call_sid == sa.bindparam("call_sid"))
)
_TAKING: Final = (
    sa.update(wallets)
    .where(_ACCOUNT)
    .values(
        balance_paise=wallets.c.balance_paise - _CHARGE,
        reserved_paise=wallets.c.reserved_paise - _AMOUNT,
        updated_at=_NOW,
    )
)
_TAKE: Final = Statement(_TAKING)
_SETTLE: Final = Statement(
    _TAKING.values(
        spent_paise=_SPENT + _CHARGE,
        spent_hour=sa.case((wallets.c.spent_hour > _HOUR, wallets.c.spent_hour), else_=_HOUR),
    )
)
_PAY: Final = Statement(
    sa.update(wallets)
    .where(_ACCOUNT, wallets.c.balance_paise - wallets.c.reserved_paise >= _AMOUNT)
    .values(balance_paise=wallets.c.balance_paise - _AMOUNT, updated_at=_NOW)
)
_ENTERED: Final = Statement(
    sa.select(ledger.c.kind, ledger.c.amount_paise).where(
        ledger.c.account_sid == sa.bindparam("account_sid"), ledger.c.reference == sa.bindparam("reference")
    )
)
_ENTER: Final = insert_into(ledger)

LISTING: Final = Listing(ledger.c.created_at, ledger.c.entry_id)
"""List of ledger entries, newest first."""


_WALLETS: Final = ValueTable(wallets, Wallet)
_RESERVES: Final = ValueTable(reserves, Reserve, order=(reserves.c.created_at,))
_LEDGER: Final = ValueTable(ledger, LedgerEntry)

get, open_reserves = _WALLETS.get, _RESERVES.all


def create(connection: Connection, account_sid: str, now: datetime) -> None:
    """Create an empty wallet for a new account."""
    _WALLETS.insert(connection, Wallet(account_sid, 0, 0, now))


def top_up(
    connection: Connection,
    account_sid: str,
    amount_paise: int,
    now: datetime,
    *,
    reference: str | None = None,
    note: str | None = None,
    kind: str = "top_up",
) -> int:
    """
    Add money and return the new balance; a reference already used adds nothing.

    Raises:
        NotFound: There is no such account.
        Conflict: The reference belongs to another kind of entry, e.g. a purchase, or to another amount.
    """
    micros = to_micros(now)
    taken = False
    if reference is not None:
        # The lock on the wallet's row keeps others from writing the same reference.
        _WALLET.first(connection, {"account_sid": account_sid})
        entered = _ENTERED.first(connection, {"account_sid": account_sid, "reference": reference})
        if entered is not None and (entered["kind"], entered["amount_paise"]) != (kind, amount_paise):
            raise Conflict(f"The reference {reference} is in use for something else; nothing was added.")
        taken = entered is not None
    if not taken:
        _TAKE.run(
            connection,
            {"account_sid": account_sid, "charge_paise": -amount_paise, "amount_paise": 0, "now": micros},
        )
    wallet = get(connection, account_sid)
    if wallet is None:
        raise NotFound("There is no such account.")
    if not taken:
        _enter(connection, account_sid, kind, amount_paise, micros, reference=reference, note=note)
    return wallet.balance_paise


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
        _TAKE.run(connection, {**wanted, "charge_paise": 0})
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
        _enter(connection, account_sid, "charge", -charge_paise, micros, call_sid=call_sid)
    return charge_paise


def charge(
    connection: Connection,
    account_sid: str,
    amount_paise: int,
    now: datetime,
    *,
    kind: str,
    reference: str,
    note: str | None = None,
) -> int | Conflict | InsufficientBalance | NotFound:
    """
    Charge money for anything but a call, and return the new balance.

    Money reserved for calls is never charged. The reference names the item paid for: charging it again with
    the same kind charges nothing. On failure the error is returned and nothing is written.
    """
    found = _WALLET.first(connection, {"account_sid": account_sid})
    if found is None:
        return NotFound("There is no such account.")
    # The lock on the wallet's row keeps others from writing the same reference.
    entered = _ENTERED.first(connection, {"account_sid": account_sid, "reference": reference})
    if entered is not None:
        same = entered["kind"] == kind
        return int(found["balance_paise"]) if same else Conflict(f"The reference {reference} is in use.")
    micros = to_micros(now)
    taken = {"account_sid": account_sid, "amount_paise": amount_paise, "now": micros}
    if _PAY.run(connection, taken) != 1:
        return short_of(amount_paise)
    _enter(connection, account_sid, kind, -amount_paise, micros, reference=reference, note=note)
    return int(found["balance_paise"]) - amount_paise


def available(connection: Connection, account_sid: str) -> int:
    """Available money of a wallet, in paise; locks the wallet until the transaction ends."""
    wallet = _WALLET.first(connection, {"account_sid": account_sid})
    return 0 if wallet is None else int(wallet["balance_paise"] - wallet["reserved_paise"])


def reserved_in_all(connection: Connection) -> tuple[int, int]:
    """Number of open reserves, and their sum in paise."""
    count, paise = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(reserves.c.amount_paise), 0))
    ).one()
    return int(count), int(paise)


def entry_conditions(account_sid: str, kind: str | None) -> list[Condition]:
    """Conditions of the entries of a list, without those on time."""
    mine: list[Condition] = [ledger.c.account_sid == account_sid]
    return mine if kind is None else [*mine, ledger.c.kind == kind]


def entries(connection: Connection, entry_ids: Sequence[str]) -> list[LedgerEntry]:
    """Ledger entries with these ids, in the given order."""
    return _LEDGER.by_keys(connection, [int(entry_id) for entry_id in entry_ids])


def ledger_sum(connection: Connection, account_sid: str) -> int:
    """Sum of the account's ledger, which its balance must equal."""
    return int(
        connection.scalar(
            sa.select(sa.func.coalesce(sa.func.sum(ledger.c.amount_paise), 0)).where(
                ledger.c.account_sid == account_sid
            )
        )
        or 0
    )


def spend_limit(connection: Connection, account_sid: str) -> int | None:
    """Spend limit of the account's calls per clock hour, in paise; None without a limit."""
    found: int | None = connection.scalar(
        sa.select(accounts.c.max_spend_paise_per_hour).where(accounts.c.account_sid == account_sid)
    )
    return found


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


def short_of(amount_paise: int) -> InsufficientBalance:
    """Error for a wallet that cannot cover an amount."""
    return InsufficientBalance(
        f"The wallet cannot cover {amount_paise / 100:.2f} INR more; top it up and try again."
    )


def _enter(
    connection: Connection,
    account_sid: str,
    kind: str,
    amount_paise: int,
    micros: int,
    *,
    call_sid: str | None = None,
    reference: str | None = None,
    note: str | None = None,
) -> None:
    _ENTER.run(
        connection,
        {
            "account_sid": account_sid,
            "kind": kind,
            "amount_paise": amount_paise,
            "call_sid": call_sid,
            "reference": reference,
            "note": note,
            "created_at": micros,
        },
    )
