"""
Group-committing writer: operations of many tasks share one transaction.

While one transaction is in progress the next one collects operations, so the cost per operation falls with
the load. A failing operation fails alone. A failing database is retried; new requests are rejected meanwhile,
and the state of active calls is kept until it can be written.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.aio.database import Database, Operation
from callcontrol.database.aio.operations import Failed, Shared, apart, together
from callcontrol.database.errors import CommitInDoubt, is_transient
from callcontrol.database.functions import Execution
from callcontrol.database.tables.system import writer_probe
from callcontrol.errors import DomainError, Internal, ServiceUnavailable
from callcontrol.histogram import Histogram
from sip.values import constructed_natively, frozen

T = TypeVar("T")
Urgency = Literal["lazy", "soon", "now"]

log = logging.getLogger(__name__)

_FIRST_RETRY_S: Final = 0.005
_LAST_RETRY_S: Final = 1.0
_COMMIT_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """
    Delays and limits of the writer.

    Attributes:
        flush_interval_s: Longest delay of a source's state, to be written together with more of it.
        soon_s: The same for state that a client waits for.
        failure_grace_s: Time that the database may fail before waiting requests are rejected.
        transaction_timeout_s: Time after which an unfinished transaction counts as a failure.
        timeout_s: Total waiting time of one request.
        max_waiting: Requests that may wait; more are rejected.
        max_batch: Requests in one transaction.
        node: Row name of this writer's probe, which tests if the database accepts writes again.
    """

    flush_interval_s: float = 0.1
    soon_s: float = 0.02
    failure_grace_s: float = 2.0
    transaction_timeout_s: float = 5.0
    timeout_s: float = 10.0
    max_waiting: int = 5000
    max_batch: int = 200
    node: str = "local"


@dataclass(slots=True)
class WriterStats:
    """Counters of the writer; ``commit_s`` is the duration of committed transactions."""

    transactions: int = 0
    operations: int = 0
    refused: int = 0
    failures: int = 0
    in_doubt: int = 0
    commit_s: Histogram = field(default_factory=lambda: Histogram(_COMMIT_S))


class Source(Protocol):
    """
    Holds state that the next transaction writes, newest state only.

    Its methods are called on the event loop, while a transaction is assembled and after it has ended.
    """

    def drain(self) -> Operation[Any] | None:
        """Return an operation that writes the held state; None if there is none."""

    def written(self, result: Any) -> None:
        """Handle the commit of the operation's transaction."""

    def restore(self) -> None:
        """Restore the taken state, unless there is newer: the transaction failed with the database."""

    def rejected(self, error: Exception) -> None:
        """Handle the failure of the operation itself, which would fail again."""


@constructed_natively
@dataclass(slots=True, eq=False)
class _Request:
    operation: Operation[Any]
    future: asyncio.Future[Any] | None
    undo: Operation[Any] | None = None

    @property
    def withdrawn(self) -> bool:
        return self.future is not None and self.future.done()


@frozen
class _Batch:
    """Requests and source operations of one transaction."""

    requests: list[_Request]
    sources: list[Source]
    operations: list[Operation[Any]]
    """Operations of the requests, then those of the sources."""


class Writer:
    """Writes for all tasks of this process; see the module docstring."""

    def __init__(self, database: Database, settings: WriterSettings | None = None) -> None:
        self._database = database
        self._settings = settings or WriterSettings()
        self._queue: deque[_Request] = deque()
        self._sources: list[Source] = []
        self._changed: set[Source] = set()
        self._wake = asyncio.Event()
        self._lazy: asyncio.Handle | None = None
        self._lazy_at = 0.0
        self._sources_due = False
        self._writing_sources = False
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._doubt: tuple[CommitInDoubt, _Batch] | None = None
        self._failing_since: float | None = None
        self._retry_s = _FIRST_RETRY_S
        self.stats = WriterStats()

    def failing(self) -> bool:
        """Return True while requests are rejected: the database fails or does not answer for too long."""
        return self._database.unwritable

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a transaction."""
        return len(self._queue)

    def attach(self, source: Source) -> None:
        """Add a source, whose state is written with later transactions."""
        self._sources.append(source)

    async def start(self) -> None:
        """Start writing."""
        self._task = asyncio.create_task(self._run(), name="database-writer")
        if self._changed:
            self._ask_sources()

    async def close(self) -> None:
        """Write all pending state, as far as the database accepts it, and stop."""
        if self._task is None:
            return
        self._closing = True
        self._wake.set()
        await self._task
        self._task = None
        self._cancel_lazy()

    def schedule_flush(self, source: Source, urgency: Urgency = "lazy") -> None:
        """Schedule the writing of a source: after ``flush_interval_s`` if lazy, after ``soon_s``, or now."""
        self._changed.add(source)
        if urgency == "now":
            self._ask_sources()
        elif urgency == "lazy" and self._lazy is not None:
            pass  # What is scheduled comes no later.
        elif not self._sources_due and self._task is not None:
            loop = asyncio.get_running_loop()
            settings = self._settings
            at = loop.time() + (settings.soon_s if urgency == "soon" else settings.flush_interval_s)
            # The handle need not tell its time: of uvloop's, one that is due at once does not.
            if self._lazy is None or at < self._lazy_at:
                self._cancel_lazy()
                self._lazy, self._lazy_at = loop.call_at(at, self._ask_sources), at

    async def commit(
        self,
        operation: Callable[[Connection], T | DomainError],
        *,
        undo: Operation[Any] | None = None,
        continues: bool = False,
    ) -> T:
        """
        Run an operation in the next transaction and return its result once that is committed.

        The operation may run several times, each in a new transaction after the previous one was rolled back.
        An operation that fails before it has written anything should *return* the ``DomainError``: raising it
        repeats the whole transaction with every operation under its own savepoint.

        Args:
            operation: Function to run.
            undo: Function to run if the operation was committed after its caller was cancelled or timed out.
            continues: True if it completes earlier work: then it is not rejected because of a full queue.

        Raises:
            DomainError: The error that the operation returned or raised.
            ServiceUnavailable: The database is failing or overloaded; nothing was done, or ``undo`` reverts
                it.
            Internal: The operation failed unexpectedly; the log says how.
        """
        if self._database.unwritable or self._closing or self._task is None:
            self.stats.refused += 1
            raise ServiceUnavailable("The database is not taking writes; try again shortly.")
        if len(self._queue) >= self._settings.max_waiting and not continues:
            self.stats.refused += 1
            raise ServiceUnavailable("Too many requests are waiting for the database; try again shortly.")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        request = _Request(operation, future, undo)
        self._queue.append(request)
        self._wake.set()
        late = loop.call_later(self._settings.timeout_s, _expire, future)
        try:
            outcome = await future
        except TimeoutError:
            self._abandon(request)
            self.stats.refused += 1
            raise ServiceUnavailable("The database did not answer in time; try again shortly.") from None
        except asyncio.CancelledError:
            self._abandon(request)
            raise
        finally:
            late.cancel()
        if isinstance(outcome, DomainError):
            raise outcome
        return outcome  # type: ignore[no-any-return]

    async def flush(self) -> None:
        """Wait until everything handed over before this call is durable."""
        self._ask_sources()
        await self.commit(_nothing)

    async def flush_pending(self) -> None:
        """
        Write the state of the sources before a read that it may change.

        Returns at once if they hold nothing, or if the database accepts no writes: a read of older state is
        better than none.
        """
        if self._lazy is not None or self._sources_due or self._writing_sources:
            with contextlib.suppress(ServiceUnavailable):
                await self.flush()

    def _ask_sources(self) -> None:
        self._sources_due = True
        self._cancel_lazy()
        self._wake.set()

    async def _run(self) -> None:
        while True:
            if not self._closing:
                await self._wake.wait()
            self._wake.clear()
            if not await self._step():
                return
            if self._failing_since is not None and await self._give_up_or_wait():
                return

    async def _step(self) -> bool:
        """Do the next piece of work; False if none is left and the writer closes."""
        if self._doubt is not None:
            await self._resolve(*self._doubt)
            self._wake.set()
            return True
        batch = self._assemble()
        if batch.operations:
            await self._write(batch)
        elif self._failing_since is not None:
            await self._probe()
        elif self._closing:
            return False
        return True

    def _assemble(self) -> _Batch:
        batch = _Batch([], [], [])
        while self._queue and len(batch.requests) < self._settings.max_batch:
            request = self._queue.popleft()
            if not request.withdrawn:
                batch.requests.append(request)
                batch.operations.append(request.operation)
        if self._queue:
            self._wake.set()
        # After a failure, a real write is a better test of the database than a probe.
        if not (self._sources_due or self._closing or self._failing_since is not None):
            return batch
        self._sources_due = False
        # In the order of their attachment.
        for source in self._sources:
            if source not in self._changed:
                continue
            try:
                operation = source.drain()
                self._changed.discard(source)
                if operation is not None:
                    batch.sources.append(source)
                    batch.operations.append(operation)
            except Exception:  # A faulty source must not stop the writer, and with it every call.
                log.exception("draining a source failed")
        return batch

    async def _write(self, batch: _Batch) -> None:
        self._writing_sources = bool(batch.sources)
        loop = asyncio.get_running_loop()
        stuck = loop.call_later(self._settings.transaction_timeout_s, self._stuck)
        began = loop.time()
        try:
            outcomes = await self._transact(batch.operations)
        except CommitInDoubt as doubt:
            self.stats.in_doubt += 1
            self._doubt = doubt, batch
            self._failed(doubt)
        except Exception as error:  # Whatever the error, accepted operations are kept and retried.
            self._failed(error)
            self._put_back(batch)
        else:
            self.stats.commit_s.observe(loop.time() - began)
            self._written(batch, outcomes)
        finally:
            stuck.cancel()

    async def _resolve(self, doubt: CommitInDoubt, batch: _Batch) -> None:
        """
        Query the result of a transaction whose commit was not answered.

        Repeating it without the query could find its rows written, and report that as errors of the
        operations.
        """
        try:
            committed = await self._database.was_committed(doubt.transaction)
        except Exception as error:  # Whatever the error, the commit stays in doubt and is queried again.
            self._failed(error)
            return
        if committed is None:
            self._failed(doubt)
            return
        self._doubt = None
        log.info("the interrupted commit %s", "succeeded" if committed else "is repeated")
        if committed:
            self._written(batch, doubt.result)
        else:
            self._put_back(batch)

    def _put_back(self, batch: _Batch) -> None:
        self._writing_sources = False
        self._queue.extendleft(reversed(batch.requests))
        for source in batch.sources:
            self._changed.add(source)
            try:
                source.restore()
            except Exception:  # A faulty source must not keep the others from being retried.
                log.exception("restoring the state of a source failed")
        self._sources_due = self._sources_due or bool(batch.sources)

    def _written(self, batch: _Batch, outcomes: Sequence[Any]) -> None:
        if self._failing_since is not None or self._database.unwritable:
            self._recovered()
        self.stats.transactions += 1
        self.stats.operations += len(outcomes)
        for request, outcome in zip(batch.requests, outcomes, strict=False):
            self._settle(request, outcome)
        for source, outcome in zip(batch.sources, outcomes[len(batch.requests) :], strict=True):
            try:
                if isinstance(outcome, Failed):
                    source.rejected(outcome.error)
                else:
                    source.written(outcome)
            except Exception:  # A faulty source must not keep the others from being told.
                log.exception("a source failed to handle the result of its write")
        self._writing_sources = False

    async def _transact(self, operations: Sequence[Operation[Any]]) -> list[Any]:
        try:
            executed = await self._execute(*operations)
            if executed is not None:
                return [executed.outcome]
            return await self._database.write(partial(together, operations))
        except CommitInDoubt:
            raise
        except Exception as error:
            if is_transient(error):
                raise
        return await self._database.write(partial(apart, operations))

    async def _execute(self, operation: Operation[Any], *others: Operation[Any]) -> Execution | None:
        """Run an operation that is alone as a function of the database; None if nothing was done."""
        if others or not isinstance(operation, Shared):
            return None
        try:
            return await self._database.execute(operation.execution)
        except CommitInDoubt as doubt:
            raise CommitInDoubt(doubt.transaction, [doubt.result]) from doubt

    def _settle(self, request: _Request, outcome: Any) -> None:
        error: Exception | None = None
        if isinstance(outcome, Failed):
            error = outcome.error
            if not isinstance(error, DomainError):
                log.error("an operation on the database failed", exc_info=error)
                error = Internal("The request failed unexpectedly; the server's log says why.")
        if request.future is None:
            return
        if request.future.done():
            if error is None:
                self._undo(request, outcome)
        elif error is not None:
            request.future.set_exception(error)
        else:
            request.future.set_result(outcome)

    def _abandon(self, request: _Request) -> None:
        """Undo a committed request whose caller left before it received the result."""
        future = request.future
        if future is not None and future.done() and not future.cancelled() and future.exception() is None:
            self._undo(request, future.result())

    def _undo(self, request: _Request, outcome: Any) -> None:
        if request.undo is not None and not isinstance(outcome, DomainError):
            self._queue.append(_Request(request.undo, None))
            self._wake.set()

    async def _probe(self) -> None:
        try:
            await self._database.write(partial(_touch_probe, self._settings.node))
        except Exception as error:
            self._failed(error)
        else:
            self._recovered()

    def _failed(self, error: Exception) -> None:
        self.stats.failures += 1
        now = asyncio.get_running_loop().time()
        if self._failing_since is None:
            self._failing_since = now
            # Another process that briefly holds the lock is no reason for a warning.
            log.info("writing to the database failed, trying again: %s", error)
        if not self._database.unwritable and now - self._failing_since >= self._settings.failure_grace_s:
            self._database.unwritable = True
            log.error("the database has been failing for %.1f s: %s", now - self._failing_since, error)

    def _stuck(self) -> None:
        """Treat a transaction beyond its timeout as a failure: reject all waiting requests."""
        if not self._database.unwritable:
            self._database.unwritable = True
            log.error("the database has not answered for %.1f s", self._settings.transaction_timeout_s)
        self._refuse_waiting()

    def _recovered(self) -> None:
        log.log(
            logging.WARNING if self._database.unwritable else logging.INFO,
            "the database accepts writes again",
        )
        self._failing_since = None
        self._database.unwritable = False
        self._retry_s = _FIRST_RETRY_S

    async def _give_up_or_wait(self) -> bool:
        """Reject waiting requests or pause; returns True if the writer ends with work unwritten."""
        if self._database.unwritable:
            self._refuse_waiting()
        if self._closing and self._database.unwritable:
            log.error("the database fails during shutdown; %d operations are lost", len(self._queue))
            return True
        await asyncio.sleep(self._retry_s)
        self._retry_s = min(self._retry_s * 2, _LAST_RETRY_S)
        self._wake.set()
        return False

    def _refuse_waiting(self) -> None:
        kept: deque[_Request] = deque()
        for request in self._queue:
            if request.future is None:
                kept.append(request)
            elif not request.future.done():
                self.stats.refused += 1
                request.future.set_exception(
                    ServiceUnavailable("The database is not taking writes; try again shortly.")
                )
        self._queue = kept

    def _cancel_lazy(self) -> None:
        if self._lazy is not None:
            self._lazy.cancel()
            self._lazy = None


def _expire(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())


def _nothing(_: Connection) -> None:
    """Write nothing; its commit implies that everything before it is committed."""


def _touch_probe(node: str, connection: Connection) -> None:
    touched = connection.execute(
        sa.update(writer_probe)
        .where(writer_probe.c.node == node)
        .values(probed_at=writer_probe.c.probed_at + 1)
    )
    if touched.rowcount == 0:
        connection.execute(sa.insert(writer_probe).values(node=node, probed_at=0))
