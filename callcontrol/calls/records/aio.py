"""
Call records: inserted durably before a call is dialled, then kept up to date behind it.

A call changes several times within a second, but only its newest state matters. So ``update`` only marks a
record as dirty, and the record is read when the next transaction is built, on the event loop, where its owner
changes it. However fast a call goes through its states, each transaction writes it once.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.charges import Rates
from callcontrol.calls.hangup_cause import NORMAL_TEMPORARY_FAILURE
from callcontrol.calls.product import CallAttachment, Products
from callcontrol.calls.records.cdr import Cdr, CdrFilter
from callcontrol.calls.records.end import close_record, missed_call
from callcontrol.calls.records.journal import CallJournal
from callcontrol.calls.records.store import calls, orphaned_dialogs
from callcontrol.calls.records.store import lists as call_lists
from callcontrol.calls.records.store.transactions import CallTransactions, EventOutbox, NewCall
from callcontrol.database.aio.database import Database, Operation
from callcontrol.database.aio.idempotency import CLAIM
from callcontrol.database.aio.operations import Shared
from callcontrol.database.aio.pages import ListQuery, Pager
from callcontrol.database.aio.writer import Urgency, Writer
from callcontrol.database.statements import to_micros
from callcontrol.errors import DomainError, Forbidden, NotFound
from callcontrol.models import CallFilter, CallRecord, Page, Position, PublishedEvent, WebhookEvent
from callcontrol.trunks.aio.places import TrunkPlaces
from callcontrol.trunks.places import Limits

log = logging.getLogger(__name__)

# Records per transaction that keep the event loop busy for no more than a few milliseconds.
_MANY: Final = 64

# A record is inserted within seconds of its creation; its outcome follows at the end of the longest call.
_INSERTS_SETTLED: Final = timedelta(minutes=10)
_OUTCOMES_SETTLED: Final = timedelta(hours=5)


class CallStore:
    """
    The records of calls. Attach it to one writer.

    For a request it refuses it raises ``DomainError`` and nothing else; ``ServiceUnavailable`` says that the
    database is failing or its queue is full and that nothing was done. ``update`` and ``finish`` never wait
    and never fail: what they write is kept until it can be written.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        outbox: EventOutbox,
        products: Products,
        *,
        node: str = "local",
        public_url: Callable[[], str] = lambda: "",
        places: TrunkPlaces | None = None,
    ) -> None:
        self._database = database
        self._writer = writer
        self._outbox = outbox
        self._transactions = CallTransactions(products.rows, outbox)
        self._products = products
        self._node = node
        self._held = _Held()
        self._taken: _Held | None = None
        self._careful = False
        self._pager = Pager(call_lists.LISTING)
        self._public_url = public_url
        self._places = places
        self.journal = CallJournal()
        """Journal of the calls of this process."""
        self.watcher: Callable[[CallRecord], None] | None = None
        """Called with each record that is new or has changed, while somebody watches calls."""
        writer.attach(self)

    @property
    def node(self) -> str:
        """Name of this process among those that share the database."""
        return self._node

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
        attachment: CallAttachment | None = None,
        limited: bool = False,
        choices: Sequence[Limits] = (),
    ) -> int:
        """
        Commit a new call with its reserve, its attachment and its events; sets ``record.node``.

        The start events of the call's product are published too, before ``events``. On PostgreSQL a call that
        is ``limited`` is refused beyond the limits of its account. ``choices`` are limits of the trunks that
        its first leg may use: the number of the first with a place, which is taken, is returned.

        Raises:
            InsufficientBalance: The wallet cannot cover the reserve; nothing was written.
            RateLimited: The account begins calls too fast; nothing was written.
            ServiceUnavailable: The account or the trunks are at their limit, or the database cannot take the
                call; nothing was written.
            DomainError: The attachment refuses; nothing was written.
        """
        record.node = self._node
        published: list[PublishedEvent] = [*self._products.of(record).start_events(record), *events]
        new = NewCall(
            calls.row_of(record),
            published,
            reserve_paise,
            record.created_at,
            CLAIM.get(),
            limited,
            choices,
        )
        insert: Operation[int | DomainError] = Shared(
            self._transactions.insert, new, self._transactions.insertion
        )
        if attachment is not None:
            insert = partial(self._transactions.insert_with, attachment, new)
        undo = partial(self._transactions.undo_insert, new, attachment, self._end_refused)
        try:
            choice = await self._writer.commit(insert, undo=undo)
        except DomainError as refusal:
            if not self._makes_room(refusal.limit, record.account_sid, choices):
                raise
            # The end of a call that would make room is not written yet.
            await self._writer.flush()
            choice = await self._writer.commit(insert, undo=undo)
        if published:
            self._outbox.committed(published)
        if self.watcher is not None:
            self.watcher(record)
        return choice

    def _makes_room(self, limit: str | None, account_sid: str, choices: Sequence[Limits]) -> bool:
        """Return True if a call or leg that counts against a limit has ended, which is not written yet."""
        if limit == "trunk":
            return self._places is not None and self._places.leaving(choices)
        held = [self._held] if self._taken is None else [self._held, self._taken]
        return limit == "account_calls" and any(
            each.records[call_sid].account_sid == account_sid for each in held for call_sid in each.charges
        )

    def update(self, record: CallRecord, *, events: Sequence[PublishedEvent] = ()) -> None:
        """Queue the record's state for writing, with the events in the same transaction."""
        records = self._held.records
        is_first = not records
        records[record.call_sid] = record
        # Behind what is held a flush is scheduled already.
        if events or is_first or len(records) >= _MANY:
            self._held.events.extend(events)
            urgency: Urgency = "soon" if events else "lazy"
            self._writer.schedule_flush(self, "now" if len(records) >= _MANY else urgency)
        if self.watcher is not None:
            self.watcher(record)

    def finish(
        self, record: CallRecord, *, charge_paise: int = 0, events: Sequence[PublishedEvent] = ()
    ) -> None:
        """
        Write the last state of a call, settle its reserve and queue its events, in one transaction.

        It also publishes the event of a missed call, and the end events of the call's product. A call that is
        finished twice is charged once.
        """
        record.price_paise = charge_paise
        self._held.charges.setdefault(record.call_sid, charge_paise)
        self.update(record, events=[*events, *self._end_events(record)])

    def _end_events(self, record: CallRecord) -> list[PublishedEvent]:
        """Return the events of an ended call for subscribers."""
        now = utc_now()
        missed = missed_call(record, now)
        ended: Sequence[PublishedEvent] = ()
        if record.product is not None:
            ended = self._products.of(record).end_events(record, now, self._public_url())
        return [*ended, *([] if missed is None else [missed])]

    def _end_refused(self, record: CallRecord) -> tuple[dict[str, Any], list[PublishedEvent]]:
        """Return the row and the last events of a call that was refused after its first event was sent."""
        policy = self._products.of(record)
        # Nobody was called, so that no rate matters.
        record.price_paise = close_record(record, NORMAL_TEMPORARY_FAILURE, Rates(), policy)
        completed = policy.webhook_event(record, "call.completed", {}, event_id=new_id(), at=utc_now())
        told = [] if completed is None else [completed]
        return calls.changes_of(record), [*told, *self._end_events(record)]

    async def flush(self) -> None:
        """Wait until all changes submitted before are durable."""
        await self._writer.flush()

    async def get(self, account_sid: str, call_sid: str) -> CallRecord:
        """
        Return one call of the account, in its newest state.

        Raises:
            NotFound: There is no such call.
            Forbidden: The call belongs to another account.
        """
        record = await self.find(call_sid)
        if record is None:
            raise NotFound("There is no such call.")
        if record.account_sid != account_sid:
            raise Forbidden("The call belongs to another account.")
        return record

    async def find(self, call_sid: str) -> CallRecord | None:
        """Return one call of any account, in its newest state."""
        return self._in_memory(call_sid) or await self._database.look_up(
            partial(calls.get, call_sid=call_sid)
        )

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
        await self._writer.flush_pending()
        wanted = ListQuery(
            (account_sid, query),
            call_lists.conditions(account_sid, query),
            query.start,
            query.end,
            _OUTCOMES_SETTLED if query.asks_for_outcome else _INSERTS_SETTLED,
        )

        return await self._database.read(
            lambda connection: self._pager.page(
                connection, wanted, calls.by_sids, page=page, per_page=per_page, after=after
            )
        )

    async def list_of_all_accounts(
        self, query: CallFilter, per_page: int, *, after: Position | None = None
    ) -> Page[CallRecord]:
        """
        Calls of all accounts, newest first, for operators; with ``after`` those behind that position.

        ``total`` counts those that are up if the query is for these, and else those of the page.
        """
        await self._writer.flush_pending()

        def read(connection: Connection) -> Page[CallRecord]:
            behind = None if after is None else after.identifier
            found = call_lists.of_all_accounts(connection, query, limit=per_page + 1, after=behind)
            items = calls.by_sids(connection, found[:per_page])
            total = call_lists.count_active(connection) if query.active else len(items)
            last = items[-1] if len(found) > per_page and items else None
            place = None if last is None else Position(to_micros(last.created_at), last.call_sid)
            return Page(items, total, 1, per_page, place)

        return await self._database.read(read)

    async def unfinished(self, node: str | None = None) -> Sequence[CallRecord]:
        """Calls of this node, or of another, without an end: left behind by a previous process."""
        return await self._database.read(partial(calls.unfinished, node=node or self._node))

    async def keep_dialogs(self, records: Sequence[CallRecord]) -> Mapping[str, orphaned_dialogs.Dialogs]:
        """Save the dialogs of unfinished calls; return those of all calls of this node."""
        cut_off = [record for record in records if record.dialogs]
        if cut_off:
            await self._writer.commit(partial(orphaned_dialogs.keep, node=self._node, records=cut_off))
        return await self._database.read(partial(orphaned_dialogs.of_node, node=self._node))

    def take_dialogs(self, connection: Connection, node: str) -> None:
        """Adopt the dialogs that another node was still ending when its process died."""
        orphaned_dialogs.move(connection, node, self._node)

    async def forget_dialogs(self, call_sids: Sequence[str]) -> None:
        """Delete the saved dialogs of calls whose legs have ended."""
        await self._writer.commit(partial(orphaned_dialogs.forget, call_sids=call_sids))

    async def cut_recordings(self, node: str | None = None) -> Sequence[CallRecord]:
        """Ended calls of this node, or of another, whose recording was left incomplete."""
        return await self._database.read(partial(calls.with_pending_recording, node=node or self._node))

    def _in_memory(self, call_sid: str) -> CallRecord | None:
        held = self._held.records.get(call_sid)
        if held is None and self._taken is not None:
            held = self._taken.records.get(call_sid)
        return held

    # Callbacks of the writer: when it builds a transaction, and when that has ended.

    def drain(self) -> Operation[dict[str, int]] | None:
        """Return the operation that writes all queued state; None without any."""
        if not self._held.records:
            return None
        taken, self._held = self._held, _Held()
        self._taken = taken
        rows = _rows_of(taken.records.values())
        write = self._transactions.write_each if self._careful else self._transactions.write_all
        return partial(write, rows, taken.charges, taken.events, utc_now())

    def written(self, result: dict[str, int]) -> None:
        """Handle the commit; ``result`` is the amount charged for each settled call."""
        taken, self._taken = self._taken, None
        self._careful = False
        if taken is None:
            return
        for call_sid, charged_paise in result.items():
            taken.records[call_sid].price_paise = charged_paise
        if taken.events:
            self._outbox.committed(taken.events)

    def restore(self) -> None:
        """Queue the drained state again; changes made since are newer."""
        taken, self._taken = self._taken, None
        if taken is not None:
            self._held = taken.followed_by(self._held)

    def rejected(self, error: Exception) -> None:
        """Handle a state that can never be stored: write each row apart, so that the others are stored."""
        log.error("cannot write a batch of call records; writing them one by one", exc_info=error)
        self._careful = True
        self.restore()
        self._writer.schedule_flush(self)


def _rows_of(records: Iterable[CallRecord]) -> list[dict[str, Any]]:
    rows = []
    for record in records:
        try:
            rows.append(calls.changes_of(record))
        except Exception:
            # An internal error; it must not keep the other calls from being written.
            log.exception("cannot encode the state of the record", extra={"call_sid": record.call_sid})
    return rows


class _Held:
    """Queued state: dirty records, charges of ended calls, events in order."""

    __slots__ = ("charges", "events", "records")

    def __init__(self) -> None:
        self.records: dict[str, CallRecord] = {}
        self.charges: dict[str, int] = {}
        self.events: list[PublishedEvent] = []

    def followed_by(self, newer: "_Held") -> "_Held":
        self.records.update(newer.records)
        for call_sid, charge_paise in newer.charges.items():
            self.charges.setdefault(call_sid, charge_paise)
        self.events.extend(newer.events)
        return self


class CdrService:
    """Call logs of accounts."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._pager = Pager(call_lists.LISTING)

    async def list(self, account_sid: str, query: CdrFilter, page: int = 1, per_page: int = 20) -> Page[Cdr]:
        """Call logs of the account, newest first; queued state is written first."""
        await self._writer.flush_pending()
        narrowed = (account_sid, query.direction, query.answered, query.carrier_sid, query.text)
        wanted = ListQuery(
            narrowed, call_lists.cdr_conditions(account_sid, query), query.start, query.end, _OUTCOMES_SETTLED
        )

        return await self._database.read(
            lambda connection: self._pager.page(
                connection, wanted, call_lists.cdrs_by_sids, page=page, per_page=per_page
            )
        )
