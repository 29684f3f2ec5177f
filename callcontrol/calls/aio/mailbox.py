"""
Mailbox of one call: its queue of events, its timers, its log, and the tasks that run beside it.

The performers of a call hold its mailbox and not its task. So there are no reference cycles, and a call is
freed as soon as its task is over: cycles would wait for the garbage collector, which rarely runs.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, MutableMapping
from contextvars import Context, copy_context
from typing import Any, Final

from callcontrol.calls.events import Event
from callcontrol.calls.events.agent import AgentDigits, AgentHangup, AgentTransfer
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.events.commands import (
    DigitsRequested,
    DubRequested,
    HangupRequested,
    ListenRequested,
    MuteRequested,
    TranscriptionRequested,
)
from callcontrol.calls.events.legs import LegCancelled, LegProgress
from callcontrol.calls.events.media import DigitReceived, SentenceHeard
from callcontrol.calls.events.transfers import PartnerDigit
from callcontrol.calls.hangup_cause import NORMAL_TEMPORARY_FAILURE
from callcontrol.ids import LegId
from callcontrol.models import CallRecord

_CALLS: Final = logging.getLogger("callcontrol.calls.call")
_MAX_QUEUED: Final = 1000
# Events that a peer can send at any rate. All others are limited in number, and a call may need each of them.
_SHED: Final = (
    DigitReceived,
    LegProgress,
    PartnerDigit,
    AgentDigits,
    AgentTransfer,
    AgentHangup,
    MuteRequested,
    ListenRequested,
    DigitsRequested,
    DubRequested,
    TranscriptionRequested,
    SentenceHeard,
)
_WIND_UP_LIMIT_S: Final = 10.0


class CallLogger(logging.LoggerAdapter[logging.Logger]):
    """
    Logger of one call: each line carries its ``call_sid``, in the text and as a field of the log record.

    Once the first party's dialog is known, ``call_id`` (its SIP Call-ID) is a field as well.
    """

    def __init__(self, call_sid: str) -> None:
        super().__init__(_CALLS, {"call_sid": call_sid})
        self._call_sid = call_sid
        self.call_id: str | None = None

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a line; one without options, as each call has at its end, goes to the handlers by itself."""
        if kwargs:
            super().log(level, msg, *args, **kwargs)
        elif self.isEnabledFor(level):
            text, fields = self.process(msg, {})
            record = logging.LogRecord(self.logger.name, level, "", 0, text, args, None)
            record.__dict__.update(fields["extra"])
            self.logger.handle(record)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Prefix the line with the identifier, and add it to the fields of the log record."""
        kwargs["extra"] = {"call_sid": self._call_sid, "call_id": self.call_id, **kwargs.get("extra", {})}
        return f"call {self._call_sid}: {msg}", kwargs


class CallMailbox:
    """
    The events of one call in order; ``on_closed`` is called once, when its record has its end.

    ``outcomes`` are the outcomes of effects, which are handled before any other event.
    """

    def __init__(self, record: CallRecord, on_closed: Callable[[CallRecord], None]) -> None:
        self.record = record
        self.log = CallLogger(record.call_sid)
        self.is_closed = False
        self.outcomes: deque[Event] = deque()
        self.post_outcome = self.outcomes.append
        """Queues the outcome of the effect being performed."""
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time
        """Returns monotonic seconds."""
        self._queue: deque[Event] = deque()
        self._handle: Callable[[Event], bool] | None = None
        self._over: asyncio.Future[None]
        self._context: Context
        self._passing = False
        """True while the loop passes on what is queued, or is about to."""
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        self._due: set[Timer] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._helpers: set[asyncio.Task[None]] = set()
        self._shedding = False

    # --- called by the call's task --------------------------------------------------------------------------

    async def run(self, handle: Callable[[Event], bool]) -> None:
        """
        Pass each event to ``handle`` until it returns True; an error of it is raised here.

        Events are passed on by the loop itself, in the context of this task, which wakes at the end only.
        """
        self._handle, self._over = handle, self._loop.create_future()
        self._context = copy_context()
        try:
            self._passing = True
            self._pass_on()
            await self._over
        finally:
            self._handle = None

    def _pass_on(self) -> None:
        over, queue = self._over, self._queue
        try:
            while queue and self._handle is not None and not over.done():
                event = queue.popleft()
                if isinstance(event, TimerFired) and not self._is_due(event.timer):
                    continue
                if self._handle(event):
                    over.set_result(None)
        except BaseException as failure:  # The task of the call ends with it, and reports it.
            over.set_exception(failure)
        finally:
            self._passing = False

    def cancelled(self, leg: LegId) -> LegCancelled | None:
        """Return the queued CANCEL of a caller, if there is one."""
        for event in self._queue:
            if isinstance(event, LegCancelled) and event.leg == leg:
                return event
        return None

    def stop_timers(self) -> None:
        """Stop every timer."""
        for timer in list(self._timers):
            self.disarm(timer)

    def cancel_helpers(self) -> None:
        """Cancel the tasks whose results only an active call needs."""
        for task in self._helpers:
            task.cancel()

    async def wind_up(self) -> None:
        """Wait up to 10 s for the tasks beside the call, then cancel them."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_WIND_UP_LIMIT_S)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- called by the performers of its effects ------------------------------------------------------------

    def post(self, event: Event) -> None:
        """Queue an event of the call; in a flood of digits or commands the newest are dropped."""
        if len(self._queue) < _MAX_QUEUED or not isinstance(event, _SHED):
            self._queue.append(event)
            if self._handle is not None and not self._passing:
                self._passing = True
                self._loop.call_soon(self._pass_on, context=self._context)
        elif not self._shedding:
            self._shedding = True
            self.log.warning("queue full: dropping %s and later events of peers", type(event).__name__)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run slow work in a task beside the call, which is completed after the end of the call."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def spawn_helper(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run slow work in a task beside the call, which the end of the call cancels."""
        task = self.spawn(work)
        self._helpers.add(task)
        task.add_done_callback(self._helpers.discard)
        return task

    def arm(self, timer: Timer, delay_s: float) -> None:
        """Start a timer, replacing the one that runs."""
        if timer in self._timers or timer in self._due:
            self.disarm(timer)
        self._timers[timer] = self._loop.call_later(delay_s, self._fire, timer)

    def disarm(self, timer: Timer) -> None:
        """Stop a timer; drop its event if it has fired but was not handled yet."""
        self._due.discard(timer)
        if timer in self._timers:
            self._timers.pop(timer).cancel()

    def closed(self) -> None:
        """Note that the record has its end: the call frees its capacity."""
        if self.is_closed:
            return
        self.is_closed = True
        self.stop_timers()
        record = self.record
        if record.status.ended:
            self._log_end(record)
        self._on_closed(record)

    def _log_end(self, record: CallRecord) -> None:
        self.log.info(
            "%s %s -> %s: %s (%s%s, by %s), %s s",
            record.direction,
            record.from_,
            record.to,
            record.status,
            record.hangup_cause,
            f": {record.sip_reason}" if record.sip_reason else "",
            record.hangup_source,
            record.duration_sec,
        )

    def _fire(self, timer: Timer) -> None:
        self._timers.pop(timer, None)
        self._due.add(timer)
        self.post(TimerFired(timer))

    def _is_due(self, timer: Timer) -> bool:
        due = timer in self._due
        self._due.discard(timer)
        return due

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            # Its result never comes, and the call might wait for it.
            self.log.error("a task of the call failed; ending the call", exc_info=task.exception())
            self.post(HangupRequested("system", NORMAL_TEMPORARY_FAILURE))
