"""
Queue of messages for the network: claimed account by account, at the pace of each account's channel.

Of an account, single messages are claimed before those of campaigns. A claim is a lease in the row: its
holder hands the message over, and the lease of a process that died expires. The pace is stored in the
database too, so that all processes share it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import Statement, insert_into, to_micros
from callcontrol.database.tables.chat import chat_messages, chat_paces
from callcontrol.messaging.models import ChatMessage
from callcontrol.messaging.pace import CAMPAIGN_LEEWAY_MICROS, SINGLE_LEEWAY_MICROS, admit
from callcontrol.messaging.store.messages import message_of

# Literal conditions, so that the partial indexes of queued messages apply.
_QUEUED: Final = sa.text("status = 'queued'")
_SINGLE: Final = sa.text("status = 'queued' AND campaign_id IS NULL")
_OF_CAMPAIGN: Final = sa.text("status = 'queued' AND campaign_id IS NOT NULL")
_MESSAGE: Final = chat_messages.c.message_id == sa.bindparam("_message_id")
_NEXT_ACCOUNT: Final = Statement(
    sa.select(chat_messages.c.account_sid)
    .where(_QUEUED, chat_messages.c.account_sid > sa.bindparam("after", type_=sa.Text))
    .order_by(chat_messages.c.account_sid)
    .limit(sa.literal_column("1"))
)


def _due(kind: sa.TextClause) -> Statement:
    """Query for an account's unclaimed messages of a kind that are due, the earliest first."""
    return Statement(
        sa.select(chat_messages)
        .where(
            kind,
            chat_messages.c.account_sid == sa.bindparam("account_sid", type_=sa.Text),
            chat_messages.c.due_at <= sa.bindparam("micros", type_=sa.BigInteger),
            chat_messages.c.leased_until <= sa.bindparam("micros", type_=sa.BigInteger),
        )
        .order_by(chat_messages.c.due_at)
        .limit(sa.bindparam("limit", type_=sa.Integer))
    )


SINGLES_DUE: Final = _due(_SINGLE)
OF_CAMPAIGNS_DUE: Final = _due(_OF_CAMPAIGN)
_BY_PRECEDENCE: Final = (
    (SINGLES_DUE, SINGLE_LEEWAY_MICROS),
    (OF_CAMPAIGNS_DUE, CAMPAIGN_LEEWAY_MICROS),
)
"""Kinds of messages in the order in which an account's are claimed, each with its leeway."""

_ANY_DUE: Final = Statement(
    sa.select(chat_messages.c.due_at)
    .where(
        _QUEUED,
        chat_messages.c.due_at <= sa.bindparam("micros", type_=sa.BigInteger),
        chat_messages.c.leased_until <= sa.bindparam("micros", type_=sa.BigInteger),
    )
    .limit(sa.literal_column("1"))
)
_LEASE: Final = Statement(
    sa.update(chat_messages)
    .where(_MESSAGE)
    .values(
        node=sa.bindparam("node"),
        leased_until=sa.bindparam("leased_until", type_=sa.BigInteger),
        attempts=chat_messages.c.attempts + sa.literal_column("1"),
    )
)
_POSTPONE: Final = Statement(
    sa.update(chat_messages)
    .where(_MESSAGE, chat_messages.c.status == "queued")
    .values(
        due_at=sa.bindparam("due_at", type_=sa.BigInteger),
        leased_until=sa.literal_column("0"),
    )
)
_PACE: Final = Statement(
    sa.select(chat_paces.c.reached_at).where(chat_paces.c.account_sid == sa.bindparam("account_sid"))
)
_PACE_INSERT: Final = insert_into(chat_paces)
_PACE_UPDATE: Final = Statement(
    sa.update(chat_paces)
    .where(chat_paces.c.account_sid == sa.bindparam("_account_sid"))
    .values(reached_at=sa.bindparam("reached_at"))
)


@dataclass(frozen=True, slots=True)
class Claim:
    """The process that claims due messages, the end of its lease, and the limits of the claim."""

    node: str
    now: datetime
    until: datetime
    limit: int
    per_account: int
    max_accounts: int = 50


@dataclass(frozen=True, slots=True)
class Claimed:
    """A message that this process has to hand over, and the number of attempts including this one."""

    message: ChatMessage
    attempts: int


@dataclass(frozen=True, slots=True)
class Postponed:
    """A message that any process hands over at a later time."""

    message_id: str
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """
    Result of a claim.

    Attributes:
        claimed: The messages to hand over.
        last_account: The account after which the next turn continues; empty when all accounts had a turn.
        is_full: True if the claim reached its limit, so that there may be more.
        more_at: Time when the pace of an account admits more of its messages, in microseconds; None when no
            due message waits for that.
    """

    claimed: list[Claimed]
    last_account: str
    is_full: bool
    more_at: int | None


def pace(
    connection: Connection, account_sid: str, now: int, per_second: int, wanted: int, leeway: int
) -> int:
    """Number of the wanted messages that an account may send now; they count as sent."""
    return _admitted(connection, account_sid, now, per_second, wanted, leeway)[0]


def claim(
    connection: Connection,
    wanted: Claim,
    rate_of: Callable[[Connection, str], int],
    busy: Callable[[str], int],
    after: str = "",
) -> Turn:
    """
    Claim due messages, one account after the other.

    Args:
        connection: The transaction's connection.
        wanted: The claiming process, its lease and its limits.
        rate_of: Returns the messages per second that an account may send.
        busy: Returns how many messages of an account this process is handing over already.
        after: The account after which to begin.
    """
    found: list[Claimed] = []
    more_at: int | None = None
    account = after
    for _ in range(wanted.max_accounts):
        row = _NEXT_ACCOUNT.first(connection, {"after": account})
        if row is None:
            return Turn(found, "", False, more_at)
        account = row["account_sid"]
        room = min(wanted.limit - len(found), wanted.per_account - busy(account))
        if room <= 0:
            continue
        taken, again = _claim_of(connection, wanted, account, rate_of, room)
        found += taken
        if again is not None:
            more_at = again if more_at is None else min(more_at, again)
        if len(found) >= wanted.limit:
            break
    return Turn(found, account, len(found) >= wanted.limit, more_at)


def _claim_of(
    connection: Connection,
    wanted: Claim,
    account: str,
    rate_of: Callable[[Connection, str], int],
    room: int,
) -> tuple[list[Claimed], int | None]:
    """Claim messages of one account; return them, and the time when its pace admits more that are due."""
    found: list[Claimed] = []
    micros = to_micros(wanted.now)
    lease = {"node": wanted.node, "leased_until": to_micros(wanted.until)}
    for kind, leeway in _BY_PRECEDENCE:
        due = kind.all(connection, {"account_sid": account, "micros": micros, "limit": room})
        if not due:
            continue
        count, more_at = _admitted(
            connection, account, micros, rate_of(connection, account), len(due), leeway
        )
        taken = due[:count]
        _LEASE.many(connection, [{"_message_id": each["message_id"], **lease} for each in taken])
        found += [Claimed(message_of(connection, each), each["attempts"] + 1) for each in taken]
        room -= count
        # While some of a kind wait for the pace, those of lower precedence do too.
        if count < len(due) or not room:
            return found, more_at
    return found, None


def is_single_due(connection: Connection, account_sid: str, now: int) -> bool:
    """True if a single message of the account is due that no process has claimed."""
    return SINGLES_DUE.first(connection, {"account_sid": account_sid, "micros": now, "limit": 1}) is not None


def postpone(connection: Connection, due: Sequence[Postponed]) -> None:
    """Set the later time for handing messages over."""
    rows = [{"_message_id": each.message_id, "due_at": to_micros(each.due_at)} for each in due]
    _POSTPONE.many(connection, rows)


def release(connection: Connection, node: str, until: datetime | None = None) -> int:
    """Release all claims of a process, or the one that lasts until a time; return the number of messages."""
    leased_until = chat_messages.c.leased_until
    claimed = leased_until > 0 if until is None else leased_until == to_micros(until)
    return connection.execute(
        sa.update(chat_messages).where(_QUEUED, chat_messages.c.node == node, claimed).values(leased_until=0)
    ).rowcount


def is_due(connection: Connection, now: datetime) -> bool:
    """True if a message that no process has claimed is due."""
    micros = to_micros(now)
    return _ANY_DUE.first(connection, {"micros": micros}) is not None


def depth(connection: Connection, at_most: int) -> int:
    """Number of queued messages, due or not; counts ``at_most`` of them."""
    some = sa.select(chat_messages.c.due_at).where(_QUEUED).limit(at_most).subquery()
    return connection.scalar(sa.select(sa.func.count()).select_from(some)) or 0


def _admitted(
    connection: Connection, account_sid: str, now: int, per_second: int, wanted: int, leeway: int
) -> tuple[int, int]:
    """The number that may leave, and the time when more may."""
    row: dict[str, Any] | None = _PACE.first(connection, {"account_sid": account_sid})
    admission = admit(row["reached_at"] if row else 0, now, per_second, wanted, leeway)
    if row is None:
        _PACE_INSERT.run(connection, {"account_sid": account_sid, "reached_at": admission.reached_at})
    elif admission.count:
        _PACE_UPDATE.run(connection, {"_account_sid": account_sid, "reached_at": admission.reached_at})
    return admission.count, admission.more_at
