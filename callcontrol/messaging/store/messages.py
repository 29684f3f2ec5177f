"""
Messages of the messaging network: written, updated by receipts, and found.

``queue`` hands out the messages that wait for the network.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.listing import Condition, Listing, Narrowing
from callcontrol.database.rows import JSON, ValueTable
from callcontrol.database.statements import Statement, clean, insert_into, to_micros
from callcontrol.database.tables.chat import chat_messages
from callcontrol.messaging.models import ChatMessage, MessageStatus
from callcontrol.messaging.network import Receipt
from callcontrol.messaging.receipts import passed

LISTING: Final = Listing(chat_messages.c.created_at, chat_messages.c.message_id)

CANCELLED: Final = "CAMPAIGN_CANCELLED"
"""The ``error_code`` of messages that were not sent because their campaign was cancelled."""

_MESSAGES: Final = ValueTable(
    chat_messages,
    ChatMessage,
    columns={"from_": "from_number", "to": "to_number"},
    codecs={"content": JSON},
)
_INSERT: Final = insert_into(chat_messages, ignore_conflict=True)
_GET: Final = Statement(
    sa.select(chat_messages).where(chat_messages.c.message_id == sa.bindparam("message_id"))
)
_MOVED: Final = (
    *("status", "network_ref", "error_code", "error_message", "leased_until"),
    *("sent_at", "delivered_at", "read_at", "failed_at"),
)
_MOVE: Final = Statement(
    sa.update(chat_messages)
    .where(chat_messages.c.message_id == sa.bindparam("_message_id"))
    .values({name: sa.bindparam(name) for name in _MOVED})
)
# Messages that are handed over at once are claimed without an attempt of the queue.
_WITHDRAW: Final = Statement(
    sa.delete(chat_messages).where(
        chat_messages.c.message_id == sa.bindparam("_message_id"),
        sa.text("status = 'queued' AND attempts = 0"),
    )
)
_AT_ONCE: Final = 500
_ONE_BY_ONE: Final = 8
"""Up to this number, single queries are faster than one statement that is compiled for their number."""


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Filter of a list of messages."""

    status: MessageStatus | None = None
    direction: Literal["outbound", "inbound"] | None = None
    to: str | None = None
    from_: str | None = None
    campaign_id: int | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """A message's row after receipts, and the states it passed, in order; most have no subscriber."""

    row: Mapping[str, Any]
    passed: tuple[MessageStatus, ...]


def insert_many(
    connection: Connection, messages: Iterable[ChatMessage], *, node: str = "", leased_until: int = 0
) -> None:
    """
    Write new messages; an existing one stays as it is.

    With a lease they belong to one process until it expires; without, the first process that claims them
    hands them over.
    """
    lease = {"node": node, "leased_until": leased_until, "attempts": 0}
    _INSERT.many(connection, [{**_MESSAGES.row_of(connection, message), **lease} for message in messages])


def withdraw(connection: Connection, message_id: str) -> bool:
    """
    Delete a message that its sender was refused; return True if it was there.

    One that a process has claimed from the queue stays: it may have been sent.
    """
    return _WITHDRAW.run(connection, {"_message_id": message_id}) == 1


def get(connection: Connection, message_id: str) -> ChatMessage | None:
    """One message, of any account."""
    row = _GET.first(connection, {"message_id": message_id})
    return message_of(connection, row) if row is not None else None


def by_ids(connection: Connection, message_ids: Sequence[str]) -> list[ChatMessage]:
    """These messages, in this order, without those that are gone."""
    rows = _rows(connection, message_ids)
    return [message_of(connection, rows[name]) for name in message_ids if name in rows]


def conditions(account_sid: str, query: MessageFilter) -> Sequence[Condition]:
    """The conditions of a list of messages."""
    table = chat_messages.c
    if query.campaign_id is None:
        found = Narrowing(table.account_sid == account_sid)
    else:
        # A campaign has few messages, and belongs to one account: the column is wrapped, so that no planner
        # reads all messages of the account instead.
        found = Narrowing(sa.func.coalesce(table.account_sid, "") == account_sid)
        found.by_own_index(table.campaign_id == query.campaign_id)
    found.by(table.to_number, query.to)
    for column, value in (
        (table.status, query.status),
        (table.direction, query.direction),
        (table.from_number, query.from_),
    ):
        if value is not None:
            found.by_own_index(sa.func.coalesce(column, "") == value)
    return found.conditions


def cancel(connection: Connection, campaign_id: int, now: datetime, reason: str) -> int:
    """
    Fail the messages of a campaign that no process is handing to the network yet; return their number.

    Messages being handed over are sent. Messages of a process that died can be cancelled only after their
    lease expires.
    """
    micros = to_micros(now)
    return connection.execute(
        sa.update(chat_messages)
        .where(
            chat_messages.c.campaign_id == campaign_id,
            chat_messages.c.status == "queued",
            chat_messages.c.leased_until <= micros,
        )
        .values(status="failed", failed_at=micros, error_code=CANCELLED, error_message=reason)
    ).rowcount


def apply(connection: Connection, receipts: Sequence[Receipt]) -> list[Moved]:
    """
    Apply receipts to messages, in their order; return the changed messages, each once.

    A receipt for an unknown message, or for a state that it has already passed, does nothing.
    """
    rows = _rows(connection, {receipt.message_id for receipt in receipts})
    changed: dict[str, tuple[MessageStatus, ...]] = {}
    for receipt in receipts:
        row = rows.get(receipt.message_id)
        if row is None:
            continue
        states = passed(row["status"], receipt.status)
        if states:
            _advance(row, receipt, states)
            changed[receipt.message_id] = (*changed.get(receipt.message_id, ()), *states)
    _MOVE.many(
        connection,
        [{"_message_id": name, **{column: rows[name][column] for column in _MOVED}} for name in changed],
    )
    return [Moved(rows[name], states) for name, states in changed.items()]


def under_way(
    connection: Connection, since: datetime, after: ChatMessage | None, limit: int
) -> list[ChatMessage]:
    """Messages sent since a time, or behind a message, that are neither read nor failed, oldest first."""
    at, message_id = (since, "") if after is None else (after.sent_at or since, after.message_id)
    here = sa.tuple_(sa.literal(to_micros(at), sa.BigInteger), sa.literal(message_id, sa.Text))
    wanted = (
        sa.select(chat_messages)
        .where(
            # A literal condition, so that the partial index of messages under way applies.
            sa.text("status IN ('sent', 'delivered')"),
            sa.tuple_(chat_messages.c.sent_at, chat_messages.c.message_id) > here,
        )
        .order_by(chat_messages.c.sent_at, chat_messages.c.message_id)
        .limit(limit)
    )
    return [message_of(connection, row) for row in connection.execute(wanted)]


def message_of(connection: Connection, row: Any) -> ChatMessage:
    """The message that a row holds."""
    return _MESSAGES.value_of(connection, row)


def _advance(row: dict[str, Any], receipt: Receipt, states: tuple[MessageStatus, ...]) -> None:
    """Move a row through states; skipped states get the time of the receipt."""
    at = to_micros(receipt.at)
    row["status"] = states[-1]
    row["leased_until"] = 0
    for state in states:
        row[f"{state}_at"] = at
    if receipt.network_ref is not None:
        row["network_ref"] = clean(receipt.network_ref)
    if states[-1] == "failed":
        row["error_code"] = clean(receipt.error_code)
        row["error_message"] = clean(receipt.error_message)


def _rows(connection: Connection, message_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    wanted = list(message_ids)
    found: dict[str, dict[str, Any]] = {}
    if len(wanted) <= _ONE_BY_ONE:
        for name in wanted:
            known = _GET.first(connection, {"message_id": name})
            if known is not None:
                found[name] = known
        return found
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        rows = connection.execute(sa.select(chat_messages).where(chat_messages.c.message_id.in_(some)))
        found |= {row.message_id: dict(row._mapping) for row in rows}
    return found
