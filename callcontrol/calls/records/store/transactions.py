"""Transactions that write calls, with their money, the rows of their products and their events."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from sqlalchemy.engine import Connection

from callcontrol.calls.product import CallAttachment
from callcontrol.calls.records.store import calls
from callcontrol.calls.records.store.product_rows import ProductRows
from callcontrol.database import idempotency
from callcontrol.database.errors import is_transient
from callcontrol.errors import DomainError, InsufficientBalance
from callcontrol.models import CallRecord, PublishedEvent
from callcontrol.wallet.store import reserves

log = logging.getLogger(__name__)

Row = Mapping[str, Any]


class EventOutbox(Protocol):
    """Queue of events for customers; see ``callcontrol.webhooks.aio.outbox.Outbox``."""

    def publish(self, connection: Connection, events: Sequence[PublishedEvent]) -> int:
        """Write the deliveries of events, which queues them for sending; returns their number."""

    def take_back(self, connection: Connection, events: Sequence[PublishedEvent]) -> None:
        """Delete deliveries whose transaction was abandoned."""

    def committed(self, events: Sequence[PublishedEvent]) -> None:
        """Deliver events that are now durable."""


class NewCall(NamedTuple):
    """A call to be inserted; ``claim`` is the idempotency key of the request that created it."""

    row: Row
    events: Sequence[PublishedEvent]
    reserve_paise: int
    now: datetime
    claim: tuple[str, str] | None


class CallTransactions:
    """Operations on a connection that write calls, together with the rows of products and the events."""

    def __init__(self, product_rows: Mapping[str | None, ProductRows], outbox: EventOutbox) -> None:
        self._product_rows = product_rows
        self._outbox = outbox

    def insert(self, connection: Connection, new: Sequence[NewCall]) -> list[InsufficientBalance | None]:
        """Write new calls with their reserves and their events; returns the refusal of each."""
        # A reserve of zero is opened too: it makes the settlement happen only once.
        refusals = reserves.reserve_all(
            connection,
            [(call.row["account_sid"], call.row["call_sid"], call.reserve_paise, call.now) for call in new],
        )
        accepted = [call for call, refusal in zip(new, refusals, strict=True) if refusal is None]
        rows = [call.row for call in accepted]
        calls.insert(connection, rows)
        for product in {row["product"] for row in rows} & self._product_rows.keys():
            self._product_rows[product].insert(connection, [row for row in rows if row["product"] == product])
        events = [event for call in accepted for event in call.events]
        if events:
            self._outbox.publish(connection, events)
        for call in accepted:
            if call.claim is not None:
                idempotency.note_effect(connection, call.claim, f"call:{call.row['call_sid']}")
        return refusals

    def insert_with(
        self, attachment: CallAttachment, new: NewCall, connection: Connection
    ) -> DomainError | None:
        """Write a new call with its attachment, alone: whether it is refused may depend on others' rows."""
        refusal = attachment.refusal(connection)
        if refusal is None:
            (refusal,) = self.insert(connection, [new])
        if refusal is None:
            attachment.insert(connection, new.row["call_sid"])
        return refusal

    def take_back(
        self,
        record: CallRecord,
        events: Sequence[PublishedEvent],
        now: datetime,
        attachment: CallAttachment | None,
        connection: Connection,
    ) -> None:
        """Delete a call whose insert was abandoned."""
        if attachment is not None:
            attachment.take_back(connection)
        reserves.settle(connection, record.call_sid, 0, now)
        calls.delete(connection, record.call_sid)
        if record.product in self._product_rows:
            self._product_rows[record.product].delete(connection, record.call_sid)
        self._outbox.take_back(connection, events)

    def write_all(
        self,
        rows: list[dict[str, Any]],
        charges: Mapping[str, int],
        events: Sequence[PublishedEvent],
        now: datetime,
        connection: Connection,
    ) -> dict[str, int]:
        """Write states, charges and events; return the amounts charged."""
        charged = reserves.settle_all(connection, charges, now)
        for row in rows:
            if row["call_sid"] in charged:
                row["price_paise"] = charged[row["call_sid"]]
        calls.update(connection, rows)
        for product in {row["product"] for row in rows} & self._product_rows.keys():
            self._product_rows[product].update(connection, [row for row in rows if row["product"] == product])
        if events:
            self._outbox.publish(connection, events)
        return charged

    def write_each(
        self,
        rows: list[dict[str, Any]],
        charges: Mapping[str, int],
        events: Sequence[PublishedEvent],
        now: datetime,
        connection: Connection,
    ) -> dict[str, int]:
        """Write each row apart, so that one that cannot be stored keeps no other from being stored."""
        charged: dict[str, int] = {}
        parts: list[tuple[list[dict[str, Any]], Mapping[str, int], Sequence[PublishedEvent]]] = [
            *(([], {call_sid: charge_paise}, ()) for call_sid, charge_paise in charges.items()),
            *(([row], {}, ()) for row in rows),
            *(([], {}, [event]) for event in events),
        ]
        for some_rows, some_charges, some_events in parts:
            for row in some_rows:
                if row["call_sid"] in charged:
                    row["price_paise"] = charged[row["call_sid"]]
            try:
                with connection.begin_nested():
                    charged |= self.write_all(some_rows, some_charges, some_events, now, connection)
            # Any error: a row of a value that nobody foresaw must not keep the other rows from being stored.
            except Exception as error:
                if is_transient(error):
                    raise
                # Log identifiers only: rows contain numbers, and events are private to a customer.
                rows_lost = [row["call_sid"] for row in some_rows] + [event.event_id for event in some_events]
                log.error(
                    "a row cannot be written and is lost: %s", rows_lost or list(some_charges), exc_info=error
                )
        return charged
