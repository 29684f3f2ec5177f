"""
The owner task of a call: it takes the call's events one by one, asks the machine, and performs the effects.

Everything that happens to the call goes through one queue, so that the machine sees it in order and alone.
What takes time (connecting to an agent, fetching audio, asking the wallet) runs beside it and reports back
through the queue.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from callcontrol.aio.call_log import CallLog
from callcontrol.aio.context import CallContext
from callcontrol.aio.media_adapter import MediaLegs
from callcontrol.aio.performer import Performer
from callcontrol.call import CallMachine
from callcontrol.effects import Effect
from callcontrol.errors import DomainError, InsufficientBalance
from callcontrol.events import (
    AgentDigits,
    AgentHangup,
    AgentTransfer,
    DigitReceived,
    DigitsRequested,
    Event,
    HangupRequested,
    LegProgress,
    ListenRequested,
    LiveOrder,
    MuteRequested,
    PartnerDigit,
    Timer,
    TimerFired,
)
from callcontrol.hangup import BALANCE_EXHAUSTED, NORMAL_TEMPORARY_FAILURE
from callcontrol.hunt import Ending
from callcontrol.identity import Caller
from callcontrol.ids import A_LEG, LegId
from callcontrol.models import Account, CallRecord, CallStatus, Carrier, Gateway
from callcontrol.received import Received
from callcontrol.reconcile import close_record
from callcontrol.routing import Attempt
from sip.aio import InboundSession

_MAX_QUEUED: Final = 1000
# What a peer can send at any pace. Of all else there is only so much, and a call may hang on each of it.
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
)
_WIND_UP_LIMIT_S: Final = 10.0

_UNPAID: Final = Ending(CallStatus.FAILED, BALANCE_EXHAUSTED, "system", 480, "Temporarily Unavailable")


class CallRunner:
    """Runs one call from its first event to the end of its last socket; ``on_closed`` hears of its end."""

    def __init__(
        self,
        context: CallContext,
        machine: CallMachine,
        account: Account,
        on_closed: Callable[["CallRunner"], None],
    ) -> None:
        self.record: CallRecord = machine.record
        self.log = CallLog(machine.record.call_sid)
        self._context = context
        self._machine = machine
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Event] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._outcomes: deque[Event] = deque()
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        self._due: set[Timer] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed = False
        self._shedding = False
        self._inserted = False
        self._closed = False
        self._performer = Performer(context, machine.record, account, self)
        context.switchboard.enter(self)

    # --- running --------------------------------------------------------------------------------------------

    def adopt(
        self,
        session: InboundSession,
        trunk: tuple[Carrier, Gateway],
        received: Received,
        caller: Caller | None = None,
    ) -> None:
        """Take the session of a caller; from now on nothing of it is missed."""
        self.record.sip_call_id = self.log.call_id = session.call_id
        self._performer.adopt(session, trunk, received)
        self._performer.asker.caller = caller
        self._context.traces.claim(self.record.call_sid, "a", session.call_id)

    def replace(
        self,
        leg: LegId,
        session: InboundSession,
        trunk: tuple[Carrier, Gateway],
        received: Received,
    ) -> None:
        """Let a caller take the place of a leg, or be declined."""
        self._performer.transfers.wait(leg, (session, trunk, received))
        self._context.traces.claim(self.record.call_sid, "b", session.call_id)

    @property
    def media(self) -> MediaLegs:
        """The media of the call's legs, to link them with another call's."""
        return self._performer.media

    def objection(self, order: LiveOrder) -> str | None:
        """Why the call cannot carry an order out in its present state, None when it can."""
        return self._machine.control.objection(order)

    async def run_outbound(self, attempts: Sequence[Attempt]) -> None:
        """Run a call whose record is inserted; ``attempts`` are the ways to its party."""
        self._inserted = True
        await self._run(self._machine.start_outbound, attempts)

    async def run_inbound(self, reserve_paise: int, refusal: Ending | None) -> None:
        """
        Insert the record of a call that came in, then run it, or refuse it.

        A call that cannot be recorded is not taken: the caller gets 503 and may try elsewhere.
        """
        try:
            refusal = await self._insert(reserve_paise, refusal)
        except BaseException as failure:
            self._performer.sip.reject(A_LEG, 503, NORMAL_TEMPORARY_FAILURE)
            await self._wind_up()
            if not isinstance(failure, DomainError):
                raise
            self.log.warning("not taken: %s", failure.message)
            return
        if refusal is None:
            await self._run(self._machine.start_inbound)
        else:
            await self._run(self._machine.refuse, refusal)

    async def _insert(self, reserve_paise: int, refusal: Ending | None) -> Ending | None:
        records, record = self._context.records, self.record
        record.status = CallStatus.INITIATED
        events = self._performer.event("call.initiated")
        if refusal is None:
            try:
                await records.insert(record, reserve_paise=reserve_paise, events=events)
                self._inserted = True
                return None
            except InsufficientBalance:
                self.log.info("the wallet cannot cover the call")
                refusal = _UNPAID
        await records.insert(record, events=events)
        self._inserted = True
        return refusal

    async def _run(self, start: Callable[..., list[Effect]], *arguments: object) -> None:
        try:
            self._guarded(start, *arguments)
            while not self._machine.finished:
                event = self._queue.popleft() if self._queue else await self._next()
                if not isinstance(event, TimerFired) or self._is_due(event.timer):
                    self._guarded(self._machine.handle, event)
        finally:
            await self._wind_up()

    async def _next(self) -> Event:
        """Wait for an event. There is one reader, so an asyncio.Queue would do the same for more."""
        while not self._queue:
            self._waiting = self._loop.create_future()
            await self._waiting
        return self._queue.popleft()

    def _guarded(self, step: Callable[..., list[Effect]], *arguments: object) -> None:
        """
        Take one step; a defect of ours ends this call and no other.

        The first time the machine is asked to end the call in good order. Should that fail too, ``_wind_up``
        frees what is held and gives the record an end.
        """
        try:
            self._perform_all(step(*arguments, self.now()))
        except Exception:
            self.log.exception("the call is ended for an internal error")
            if self._failed:
                raise
            self._failed = True
            self._guarded(self._machine.handle, HangupRequested("system", NORMAL_TEMPORARY_FAILURE))

    def _perform_all(self, effects: list[Effect]) -> None:
        """Perform effects, then handle what came of them before anything else is heard."""
        outcomes = self._outcomes
        while True:
            for effect in effects:
                self._perform(effect)
            if not outcomes:
                return
            effects = self._machine.handle(outcomes.popleft(), self.now())

    def _perform(self, effect: Effect) -> None:
        """Perform an effect; one that fails keeps none of the others, such as the last ones, from it."""
        try:
            self._performer.perform(effect)
        except Exception:
            self.log.exception("%s failed; the call is ended", type(effect).__name__)
            self.follow(HangupRequested("system", NORMAL_TEMPORARY_FAILURE))

    async def _wind_up(self) -> None:
        """Leave nothing: no timer, session, stream or task, and no record without its end."""
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        try:
            self._performer.release()
        finally:
            self._settle()
            self.closed()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_WIND_UP_LIMIT_S)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _settle(self) -> None:
        """Have the record's end written, if that did not come about in good order."""
        if not self._inserted or self._closed:
            return
        charge_paise = self.record.price_paise or 0
        if not self.record.status.ended:
            charge_paise = close_record(self.record, NORMAL_TEMPORARY_FAILURE, self._context.rates)
        self._context.records.finish(self.record, charge_paise=charge_paise)

    # --- callcontrol.aio.performer.Owner --------------------------------------------------------------------

    def post(self, event: Event) -> None:
        """Put an event in the call's queue; of a flood of digits or commands the newest are lost."""
        if len(self._queue) < _MAX_QUEUED or not isinstance(event, _SHED):
            self._queue.append(event)
            if self._waiting is not None and not self._waiting.done():
                self._waiting.set_result(None)
        elif not self._shedding:
            self._shedding = True
            self.log.warning("flooded: %s and what follows is dropped", type(event).__name__)

    def follow(self, event: Event) -> None:
        """Have an event handled before anything else: the outcome of the effect being performed."""
        self._outcomes.append(event)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run what takes time beside the call."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def arm(self, timer: Timer, delay_s: float) -> None:
        """Start a timer, replacing the one that runs."""
        self.disarm(timer)
        self._timers[timer] = self._loop.call_later(delay_s, self._fire, timer)

    def disarm(self, timer: Timer) -> None:
        """Stop a timer; one that has run out but was not heard yet is forgotten too."""
        self._due.discard(timer)
        handle = self._timers.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def closed(self) -> None:
        """Take note that the record has its end: the call makes room for another."""
        if self._closed:
            return
        self._closed = True
        for timer in list(self._timers):
            self.disarm(timer)
        record = self.record
        if record.status.ended:
            self._log_end(record)
        self._on_closed(self)

    def _log_end(self, record: CallRecord) -> None:
        self.log.info(
            "%s %s -> %s: %s (%s, by %s), %s s",
            record.direction,
            record.from_,
            record.to,
            record.status.value,
            record.hangup_cause,
            record.hangup_source,
            record.duration_sec,
        )

    def now(self) -> float:
        """Monotonic seconds."""
        return self._loop.time()

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
            # What it would have reported never comes, and the call might wait for it.
            self.log.error("a task of the call failed; the call is ended", exc_info=task.exception())
            self.post(HangupRequested("system", NORMAL_TEMPORARY_FAILURE))
