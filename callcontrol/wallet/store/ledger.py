"""
Wallets and their ledger.

The ledger only grows, and a wallet's balance changes by exactly the entry that is written with it. Money is
taken by one conditional UPDATE, so the check and the taking cannot be parted by another writer.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.listing import Condition, Listing
from callcontrol.database.rows import ValueTable
from callcontrol.database.statements import Given, Statement, insert_into, to_micros
from callcontrol.database.tables.accounts import accounts
from callcontrol.database.tables.wallet import ledger, wallets
from callcontrol.errors import Conflict, InsufficientBalance, NotFound
from callcontrol.models import LedgerEntry, LedgerKind, Wallet

AMOUNT: Final = sa.bindparam("amount_paise", type_=sa.BigInteger)
NOW: Final = sa.bindparam("now", type_=sa.BigInteger)
ACCOUNT: Final = wallets.c.account_sid == sa.bindparam("account_sid")


def taking(given: Given) -> sa.Update:
    """Subtract ``charge_paise`` and a reserve of ``amount_paise`` from a wallet."""
    return (
        sa.update(wallets)
        .where(wallets.c.account_sid == given.text("account_sid"))
        .values(
            balance_paise=wallets.c.balance_paise - given.whole("charge_paise"),
            reserved_paise=wallets.c.reserved_paise - given.whole("amount_paise"),
            updated_at=given.whole("now"),
        )
    )


TAKE: Final = Statement(taking(Given()))

# FOR UPDATE locks the row on databases with row locks (SQLite omits it: it has one writer anyway), so that
# the values read stay true until they are used.
_WALLET: Final = Statement(sa.select(wallets).where(ACCOUNT).with_for_update())
_PAY: Final = Statement(
    sa.update(wallets)
    .where(ACCOUNT, wallets.c.balance_paise - wallets.c.reserved_paise >= AMOUNT)
    .values(balance_paise=wallets.c.balance_paise - AMOUNT, updated_at=NOW)
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
_LEDGER: Final = ValueTable(ledger, LedgerEntry)

get = _WALLETS.get


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
    kind: LedgerKind = "top_up",
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
        TAKE.run(
            connection,
            {"account_sid": account_sid, "charge_paise": -amount_paise, "amount_paise": 0, "now": micros},
        )
    wallet = get(connection, account_sid)
    if wallet is None:
        raise NotFound("There is no such account.")
    if not taken:
        enter(connection, account_sid, kind, amount_paise, micros, reference=reference, note=note)
    return wallet.balance_paise


def charge(
    connection: Connection,
    account_sid: str,
    amount_paise: int,
    now: datetime,
    *,
    kind: LedgerKind,
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
    enter(connection, account_sid, kind, -amount_paise, micros, reference=reference, note=note)
    return int(found["balance_paise"]) - amount_paise


def enter(
    connection: Connection,
    account_sid: str,
    kind: LedgerKind,
    amount_paise: int,
    micros: int,
    *,
    reference: str | None = None,
    note: str | None = None,
) -> None:
    """Write an entry; the balance changes in the same transaction."""
    _ENTER.run(
        connection,
        {
            "account_sid": account_sid,
            "kind": kind,
            "amount_paise": amount_paise,
            "call_sid": None,
            "reference": reference,
            "note": note,
            "created_at": micros,
        },
    )


def enter_charges(connection: Connection, charges: Sequence[tuple[str, str, int]], micros: int) -> None:
    """Write the entries of ended calls, each as (account, call, charge); the balances change with them."""
    _ENTER.many(
        connection,
        [
            {
                "account_sid": account_sid,
                "kind": "charge",
                "amount_paise": -charge_paise,
                "call_sid": call_sid,
                "reference": None,
                "note": None,
                "created_at": micros,
            }
            for account_sid, call_sid, charge_paise in charges
        ],
    )


def available(connection: Connection, account_sid: str) -> int:
    """Available money of a wallet, in paise; locks the wallet until the transaction ends."""
    wallet = _WALLET.first(connection, {"account_sid": account_sid})
    return 0 if wallet is None else int(wallet["balance_paise"] - wallet["reserved_paise"])


def short_of(amount_paise: int) -> InsufficientBalance:
    """Error for a wallet that cannot cover an amount."""
    return InsufficientBalance(
        f"The wallet cannot cover {amount_paise / 100:.2f} INR more; top it up and try again."
    )


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
