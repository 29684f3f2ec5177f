"""Transactions that write calls, with their money, the rows of their products and their events."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy.engine import Connection

from callcontrol.calls.product import CallAttachment
from callcontrol.calls.records.store import at_once, calls
from callcontrol.calls.records.store.product_rows import ProductRows
from callcontrol.database import idempotency
from callcontrol.database.errors import is_transient
from callcontrol.database.functions import Execution
from callcontrol.errors import DomainError, no_free_trunk
from callcontrol.models import CallRecord, PublishedEvent
from callcontrol.trunks import store as trunks
from callcontrol.trunks.places import Limits, PlaceBook, first_leg
from callcontrol.wallet.store import reserves
from sip.values import frozen

log = logging.getLogger(__name__)

Row = Mapping[str, Any]


class EventOutbox(Protocol):
    """Queue of events for customers; see ``callcontrol.webhooks.aio.outbox.Outbox``."""

    def publish(self, connection: Connection, events: Sequence[PublishedEvent]) -> int:
        """Write the deliveries of events, which queues them for sending; returns their number."""

    def take_back(self, connection: Connection, call_sid: str) -> bool:
        """Delete the deliveries of a call; False, and none is, if one may have been sent."""

    def committed(self, events: Sequence[PublishedEvent]) -> None:
        """Deliver events that are now durable."""


@frozen
class NewCall:
    """
    A call to be inserted; ``claim`` is the idempotency key of the request that created it.

    With ``limited`` it is refused beyond the limits of its account. ``choices`` are limits of the trunks of
    its first leg, in order: the leg takes a place at the first that has one.
    """

    row: Row
    events: Sequence[PublishedEvent]
    reserve_paise: int
    now: datetime
    claim: tuple[str, str] | None
    limited: bool = False
    choices: Sequence[Limits] = ()

    @property
    def wanted(self) -> reserves.Wanted:
        """The money that is held for the call."""
        row = self.row
        return reserves.Wanted(
            row["account_sid"], row["call_sid"], self.reserve_paise, self.now, limited=self.limited
        )


class CallTransactions:
    """Operations on a connection that write calls, together with the rows of products and the events."""

    def __init__(self, product_rows: Mapping[str | None, ProductRows], outbox: EventOutbox) -> None:
        self._product_rows = product_rows
        self._outbox = outbox

    def insert(self, connection: Connection, new: Sequence[NewCall]) -> list[int | DomainError]:
        """Write new calls with their reserves and events; returns the choice of trunk or refusal of each."""
        outcomes = _enter(connection, new)
        accepted: list[NewCall] = []
        events: list[PublishedEvent] = []
        for call, outcome in zip(new, outcomes, strict=True):
            if isinstance(outcome, int):
                accepted.append(call)
                events += call.events
        if self._product_rows:
            self._insert_product_rows(connection, [call.row for call in accepted])
        if events:
            self._outbox.publish(connection, events)
        for call in accepted:
            if call.claim is not None:
                idempotency.note_effect(connection, call.claim, f"call:{call.row['call_sid']}")
        return outcomes

    def insertion(self, new: NewCall) -> Execution | None:
        """Return ``insert`` of a call as a function of PostgreSQL; None if it writes more than the record."""
        more = new.events or new.choices or new.claim or new.row["product"] in self._product_rows
        return None if more or not new.limited else at_once.execution(new.wanted, new.row)

    def _insert_product_rows(self, connection: Connection, rows: Sequence[Row]) -> None:
        for product in {row["product"] for row in rows} & self._product_rows.keys():
            self._product_rows[product].insert(connection, [row for row in rows if row["product"] == product])

    def insert_with(
        self, attachment: CallAttachment, new: NewCall, connection: Connection
    ) -> int | DomainError:
        """Write a new call with its attachment, alone: whether it is refused may depend on others' rows."""
        refusal = attachment.refusal(connection)
        if refusal is not None:
            return refusal
        (outcome,) = self.insert(connection, [new])
        if isinstance(outcome, int):
            attachment.insert(connection, new.row["call_sid"])
        return outcome

    def undo_insert(
        self,
        new: NewCall,
        attachment: CallAttachment | None,
        end: Callable[[CallRecord], tuple[Row, Sequence[PublishedEvent]]],
        connection: Connection,
    ) -> None:
        """
        Undo the insert of a call that was refused before its commit was answered.

        The call is deleted. If a sender has had one of its webhooks, somebody may know of it: then it gets
        the end that ``end`` writes into its record, and its last events.
        """
        call_sid, product = new.row["call_sid"], new.row["product"]
        if new.choices:
            trunks.remove_legs(connection, [first_leg(call_sid)])
        if new.claim is not None:
            idempotency.release_effect(connection, new.claim, f"call:{call_sid}")
        if not self._outbox.take_back(connection, call_sid):
            # As it is stored: on the event loop whoever wanted the call may have changed it since.
            record = calls.get(connection, call_sid)
            if record is not None and record.ended_at is None:
                row, events = end(record)
                self.write_all([{**row}], {call_sid: 0}, events, new.now, connection)
            return
        if attachment is not None:
            attachment.take_back(connection)
        reserves.settle(connection, call_sid, 0, new.now)
        calls.delete(connection, call_sid)
        if product in self._product_rows:
            self._product_rows[product].delete(connection, call_sid)

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


def _enter(connection: Connection, new: Sequence[NewCall]) -> list[int | DomainError]:
    """Write new calls with their money and places; returns the choice of trunk or refusal of each."""
    choices = [limits for call in new for limits in call.choices]
    if not choices:
        return [refusal or 0 for refusal in _enter_paid(connection, new)]
    book = trunks.places(connection, choices)
    outcomes: list[int | DomainError] = [0] * len(new)
    asking = list(range(len(new)))
    while asking:
        outcomes, full = _choose(book, new, asking, outcomes)
        placed = [place for place in asking if place not in full]
        refusals = _enter_paid(connection, [new[place] for place in placed])
        freed = False
        for place, refusal in zip(placed, refusals, strict=True):
            if refusal is not None:
                outcomes[place] = refusal
                freed |= book.give_back(first_leg(new[place].row["call_sid"]))
        # A call that the wallet does not cover leaves its place to one that found none.
        asking = full if freed else []
    trunks.write_places(connection, new[0].row["node"], book)
    return outcomes


def _enter_paid(connection: Connection, new: Sequence[NewCall]) -> list[DomainError | None]:
    """Reserve the money of new calls and insert the records of those that have it; returns refusals."""
    # A reserve of zero is opened too: it makes the settlement happen only once.
    entered: set[str] = set()
    if new and connection.dialect.name == "postgresql":
        entered = at_once.enter(connection, [call.wanted for call in new], [call.row for call in new])
        if len(entered) == len(new):
            return [None] * len(new)
    left = [call for call in new if call.row["call_sid"] not in entered] if entered else new
    refusals = reserves.reserve_all(connection, [call.wanted for call in left])
    rows = [call.row for call, refusal in zip(left, refusals, strict=True) if refusal is None]
    calls.insert(connection, rows)
    if left is new:
        return refusals
    refused = {call.row["call_sid"]: refusal for call, refusal in zip(left, refusals, strict=True)}
    return [refused.get(call.row["call_sid"]) for call in new]


def _choose(
    book: PlaceBook, new: Sequence[NewCall], asking: Sequence[int], outcomes: Sequence[int | DomainError]
) -> tuple[list[int | DomainError], list[int]]:
    """Acquire places for the first legs of calls; returns the outcomes, and which calls found none."""
    found, full = list(outcomes), []
    for number in asking:
        call = new[number]
        waits_us = [book.wait_us(limits) for limits in call.choices] or [0]
        if 0 in waits_us:
            found[number] = choice = waits_us.index(0)
            book.take(first_leg(call.row["call_sid"]), call.choices[choice] if call.choices else ())
        else:
            found[number] = no_free_trunk(min(waits_us) / 1_000_000)
            full.append(number)
    return found, full
