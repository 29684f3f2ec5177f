"""
Call records: inserted durably before a call is dialled, then kept up to date behind it.

A call changes several times within a second, but only its newest state matters. So ``update`` only marks a
record as dirty, and the record is read when the next transaction is built, on the event loop, where its owner
changes it. However fast a call goes through its states, each transaction writes it once.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.assistant import store as assistant_calls
from callcontrol.assistant.calls import end_events
from callcontrol.calls.ports import Companion
from callcontrol.calls.records.missed import missed_call
from callcontrol.calls.records.store import calls
from callcontrol.calls.records.store import lists as call_lists
from callcontrol.calls.records.store import orphaned_dialogs as former_dialogs
from callcontrol.database import idempotency
from callcontrol.database.aio.database import Database, Operation
from callcontrol.database.aio.idempotency import CLAIM
from callcontrol.database.aio.pages import ListQuery, Pager
from callcontrol.database.aio.writer import Writer
from callcontrol.database.errors import is_transient
from callcontrol.errors import DomainError, Forbidden, NotFound
from callcontrol.masking.store import calls as masked_calls
from callcontrol.models import CallFilter, CallRecord, Page, Position, PublishedEvent, WebhookEvent
from callcontrol.recordings.store import recordings
from callcontrol.wallet import store as wallet
from callcontrol.webhooks.store import publish as fan_out

log = logging.getLogger(__name__)

Row = Mapping[str, Any]

# Records per transaction that keep the event loop busy for no more than a few milliseconds.
_MANY: Final = 64

# A record is inserted within seconds of its creation; its outcome follows at the end of the longest call.
_INSERTS_SETTLED: Final = timedelta(minutes=10)
_OUTCOMES_SETTLED: Final = timedelta(hours=5)


class EventSink(Protocol):
    """Delivers events once their transaction is committed."""

    def committed(self, events: Sequence[PublishedEvent]) -> None:
        """Deliver events that are now durable."""


class CallStore:
    """The records of calls; see ``callcontrol.calls.ports.CallRecords``. Attach it to one writer."""

    def __init__(self, database: Database, writer: Writer, events: EventSink, *, node: str = "local") -> None:
        self._database = database
        self._writer = writer
        self._events = events
        self._node = node
        self._held = _Held()
        self._taken: _Held | None = None
        self._careful = False
        self._pager = Pager(call_lists.LISTING)
        self.public_url = ""
        """Base URL of links in events, once it is known."""
        writer.attach(self)

    @property
    def unwritten(self) -> int:
        """Number of calls whose newest state is only in memory."""
        return len(self._held.records) + (len(self._taken.records) if self._taken is not None else 0)

    async def insert(
        self,
        record: CallRecord,
        *,
        reserve_paise: int = 0,
        events: Sequence[WebhookEvent] = (),
        companion: Companion | None = None,
    ) -> None:
        """Commit a new call with its reserve, its events and its companion; sets ``record.node``."""
        record.node = self._node
        await self._writer.commit(
            partial(
                _insert,
                calls.row_of(record),
                events,
                reserve_paise,
                record.created_at,
                companion,
                CLAIM.get(),
            ),
            undo=partial(_take_back, record.call_sid, events, record.created_at, companion),
        )
        self._events.committed(events)

    def update(self, record: CallRecord, *, events: Sequence[PublishedEvent] = ()) -> None:
        """Queue the record's state for writing, with the events in the same transaction."""
        self._held.records[record.call_sid] = record
        self._held.events.extend(events)
        self._writer.touch(now=len(self._held.records) >= _MANY, soon=bool(events))

    def finish(
        self, record: CallRecord, *, charge_paise: int = 0, events: Sequence[PublishedEvent] = ()
    ) -> None:
        """
        Write the last state of a call, settle its reserve and queue its events, in one transaction.

        It also publishes the event of a missed call, and the end events of a call with a voice agent.
        """
        record.price_paise = charge_paise
        self._held.charges.setdefault(record.call_sid, charge_paise)
        now = utc_now()
        missed = missed_call(record, now)
        told = [*events, *end_events(record, now, self.public_url), *([] if missed is None else [missed])]
        self.update(record, events=told)

    async def flush(self) -> None:
        """Wait until all changes submitted before are durable."""
        await self._writer.flush()

    async def get(self, account_sid: str, call_sid: str) -> CallRecord:
        """Return one call of the account, in its newest state."""
        record = await self.find(call_sid)
        if record is None:
            raise NotFound("There is no such call.")
        if record.account_sid != account_sid:
            raise Forbidden("The call belongs to another account.")
        return record

    async def find(self, call_sid: str) -> CallRecord | None:
        """Return one call of any account, in its newest state."""
        return self._in_memory(call_sid) or await self._database.look_up(partial(_get, call_sid))

    async def list(
        self,
        account_sid: str,
        query: CallFilter,
        page: int,
        per_page: int,
        *,
        after: Position | None = None,
    ) -> Page[CallRecord]:
        """
        Calls of the account, newest first; queued state is written first.

        With ``after`` the list continues behind that position, and ``page`` is ignored.
        """
        await self._writer.catch_up()
        wanted = ListQuery(
            (account_sid, query),
            call_lists.conditions(account_sid, query),
            query.start,
            query.end,
            _OUTCOMES_SETTLED if query.status else _INSERTS_SETTLED,
        )

        def read(connection: Connection) -> Page[CallRecord]:
            if after is None:
                found = self._pager.page(connection, wanted, page=page, per_page=per_page)
            else:
                found = self._pager.after(connection, wanted, after, per_page=per_page)
            records = calls.by_sids(connection, [place.identifier for place in found.places])
            return Page(records, found.total, page, per_page, found.after)

        return await self._database.read(read)

    async def unfinished(self, node: str | None = None) -> Sequence[CallRecord]:
        """Calls of this node, or of another, without an end: left behind by a previous process."""
        return await self._database.read(partial(_unfinished, node or self._node))

    async def keep_dialogs(self, records: Sequence[CallRecord]) -> Mapping[str, former_dialogs.Dialogs]:
        """Save the dialogs of unfinished calls; return those of all calls of this node."""
        cut_off = [record for record in records if record.dialogs]
        if cut_off:
            await self._writer.commit(partial(_keep_dialogs, self._node, cut_off))
        return await self._database.read(partial(former_dialogs.of_node, node=self._node))

    async def forget_dialogs(self, call_sids: Sequence[str]) -> None:
        """Delete the saved dialogs of calls whose legs have ended."""
        await self._writer.commit(partial(former_dialogs.forget, call_sids=call_sids))

    async def cut_recordings(self, node: str | None = None) -> Sequence[CallRecord]:
        """Ended calls of this node, or of another, whose recording was left incomplete."""
        return await self._database.read(partial(recordings.cut_off, node=node or self._node))

    def _in_memory(self, call_sid: str) -> CallRecord | None:
        held = self._held.records.get(call_sid)
        if held is None and self._taken is not None:
            held = self._taken.records.get(call_sid)
        return held

    # Callbacks of the writer: when it builds a transaction, and when that has ended.

    def take(self) -> Operation[dict[str, int]] | None:
        """Return the operation that writes all queued state; None without any."""
        if not self._held:
            return None
        taken, self._held = self._held, _Held()
        self._taken = taken
        rows = _rows_of(taken.records.values())
        write = _write_each if self._careful else _write_all
        return partial(write, rows, taken.charges, taken.events, utc_now())

    def written(self, result: dict[str, int]) -> None:
        """Handle the commit; ``result`` is the amount charged for each settled call."""
        taken, self._taken = self._taken, None
        self._careful = False
        if taken is None:
            return
        for call_sid, charged_paise in result.items():
            taken.records[call_sid].price_paise = charged_paise
        self._events.committed(taken.events)

    def give_back(self) -> None:
        """Queue the drained state again; changes made since are newer."""
        taken, self._taken = self._taken, None
        if taken is not None:
            self._held = taken.followed_by(self._held)

    def refused(self, error: Exception) -> None:
        """Handle a state that can never be stored: write each row apart, so that the others are stored."""
        log.error("call records could not be written together", exc_info=error)
        self._careful = True
        self.give_back()
        self._writer.touch()


def _rows_of(records: Iterable[CallRecord]) -> list[dict[str, Any]]:
    rows = []
    for record in records:
        try:
            rows.append(calls.row_of(record))
        except Exception:
            # An internal error; it must not keep the other calls from being written.
            log.exception("the record has no storable state", extra={"call_sid": record.call_sid})
    return rows


class _Held:
    """Queued state: dirty records, charges of ended calls, events in order."""

    __slots__ = ("charges", "events", "records")

    def __init__(self) -> None:
        self.records: dict[str, CallRecord] = {}
        self.charges: dict[str, int] = {}
        self.events: list[PublishedEvent] = []

    def __bool__(self) -> bool:
        return bool(self.records)

    def followed_by(self, newer: "_Held") -> "_Held":
        self.records.update(newer.records)
        for call_sid, charge_paise in newer.charges.items():
            self.charges.setdefault(call_sid, charge_paise)
        self.events.extend(newer.events)
        return self


def _insert(
    row: Row,
    events: Sequence[WebhookEvent],
    reserve_paise: int,
    now: datetime,
    companion: Companion | None,
    claim: tuple[str, str] | None,
    connection: Connection,
) -> DomainError | None:
    refusal = companion.refusal(connection) if companion is not None else None
    if refusal is not None:
        return refusal
    # A reserve of zero is opened too: it makes the settlement happen only once.
    refusal = wallet.reserve(connection, row["account_sid"], row["call_sid"], reserve_paise, now)
    if refusal is not None:
        return refusal
    calls.insert(connection, row)
    masked_calls.insert(connection, row)
    assistant_calls.insert(connection, row)
    fan_out.publish(connection, events)
    if companion is not None:
        companion.insert(connection, row["call_sid"])
    if claim is not None:
        idempotency.note_effect(connection, claim, f"call:{row['call_sid']}")
    return None


def _take_back(
    call_sid: str,
    events: Sequence[WebhookEvent],
    now: datetime,
    companion: Companion | None,
    connection: Connection,
) -> None:
    if companion is not None:
        companion.take_back(connection)
    wallet.settle(connection, call_sid, 0, now)
    calls.delete(connection, call_sid)
    masked_calls.delete(connection, call_sid)
    assistant_calls.delete(connection, call_sid)
    fan_out.take_back(connection, events)


def _write_all(
    rows: list[dict[str, Any]],
    charges: Mapping[str, int],
    events: Sequence[PublishedEvent],
    now: datetime,
    connection: Connection,
) -> dict[str, int]:
    charged = {sid: wallet.settle(connection, sid, paise, now) for sid, paise in charges.items()}
    for row in rows:
        if row["call_sid"] in charged:
            row["price_paise"] = charged[row["call_sid"]]
    calls.update(connection, rows)
    masked_calls.update(connection, rows)
    assistant_calls.update(connection, rows)
    fan_out.publish(connection, events)
    return charged


def _write_each(
    rows: list[dict[str, Any]],
    charges: Mapping[str, int],
    events: Sequence[PublishedEvent],
    now: datetime,
    connection: Connection,
) -> dict[str, int]:
    charged: dict[str, int] = {}
    parts: list[tuple[list[dict[str, Any]], Mapping[str, int], Sequence[PublishedEvent]]] = [
        *(([], {call_sid: charge_paise}, ()) for call_sid, charge_paise in charges.items()),
        *(([row], {}, ()) for row in rows),
        *(([], {}, [event]) for event in events),
    ]
    for some_rows, some_charges, some_events in parts:
        for row in some_rows:
            row["price_paise"] = charged.get(row["call_sid"], row["price_paise"])
        try:
            with connection.begin_nested():
                charged |= _write_all(some_rows, some_charges, some_events, now, connection)
        except Exception as error:
            if is_transient(error):
                raise
            # Log identifiers only: rows contain numbers, and events are private to a customer.
            rows_lost = [row["call_sid"] for row in some_rows] + [event.event_id for event in some_events]
            log.error("a row is lost: %s", rows_lost or list(some_charges), exc_info=error)
    return charged


def _get(call_sid: str, connection: Connection) -> CallRecord | None:
    return calls.get(connection, call_sid)


def _keep_dialogs(node: str, records: Sequence[CallRecord], connection: Connection) -> None:
    former_dialogs.keep(connection, node, records)


def _unfinished(node: str, connection: Connection) -> list[CallRecord]:
    return calls.unfinished(connection, node)
