"""
Task of a call: begins and ends it, and between passes its events to the machine and performs the effects.

All events of the call go through one queue, so the machine handles them in order and alone. Slow work
(connecting to an agent, fetching audio, asking the wallet) runs in separate tasks and reports back through
the queue.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from typing import Final

from callcontrol.calls.aio.context import CallContext
from callcontrol.calls.aio.mailbox import CallMailbox
from callcontrol.calls.aio.media.legs import MediaLegs
from callcontrol.calls.aio.performer import Performer
from callcontrol.calls.aio.transfers import TransferPerformer
from callcontrol.calls.call import CallMachine
from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.events import Event
from callcontrol.calls.events.commands import HangupRequested, LiveCommand, RecordingRequested
from callcontrol.calls.hangup_cause import BALANCE_EXHAUSTED, NORMAL_TEMPORARY_FAILURE, ORIGINATOR_CANCEL
from callcontrol.calls.leg import LegView
from callcontrol.calls.live import control
from callcontrol.calls.records.end import close_record
from callcontrol.errors import DomainError, InsufficientBalance, ServiceUnavailable
from callcontrol.ids import A_LEG, LegId
from callcontrol.models import Account, CallRecord, CallStatus, Carrier, Gateway
from callcontrol.models.parties import RouteAttempt
from callcontrol.trunks.inbound_invite import Caller, Received
from callcontrol.trunks.places import Limits, limits_of
from sip import readable
from sip.aio import InboundSession

_UNRECORDED_RETRY_S: Final = 5
_UNPAID: Final = Ending(CallStatus.FAILED, BALANCE_EXHAUSTED, "system", 480, "Temporarily Unavailable")


class CallRunner:
    """Runs one call from its first event to the end of its last socket; calls ``on_closed`` at its end."""

    def __init__(
        self,
        context: CallContext,
        machine: CallMachine,
        account: Account,
        on_closed: Callable[[CallRecord], None],
    ) -> None:
        self.record: CallRecord = machine.record
        self._context = context
        self._machine = machine
        self._mailbox = CallMailbox(machine.record, on_closed)
        self.log = self._mailbox.log
        self._failed = False
        self._inserted = False
        self._limits: Limits = ()
        """Limits of the caller's trunk that are counted over all servers."""
        self._performer = Performer(context, machine.record, machine.policy, account, self._mailbox)

    # --- running --------------------------------------------------------------------------------------------

    def adopt(
        self,
        session: InboundSession,
        trunk: tuple[Carrier, Gateway],
        received: Received,
        caller: Caller | None = None,
    ) -> None:
        """Adopt the session of a caller; from now on all its events are handled."""
        self.log.call_id = call_id = session.call_id
        self.record.sip_call_id = readable(call_id)
        if self._context.services.places is not None:
            self._limits = limits_of(*trunk)
        self._performer.adopt(session, trunk, received, caller)
        self._context.traces.claim(self.record.call_sid, "a", call_id, session.request.from_.tag or "")

    def replace(
        self,
        leg: LegId,
        session: InboundSession,
        trunk: tuple[Carrier, Gateway],
        received: Received,
    ) -> None:
        """Queue a caller that asks to replace a leg; the call accepts or declines it."""
        self._performer.part(TransferPerformer).wait(leg, (session, trunk, received))
        tag = session.request.from_.tag or ""
        self._context.traces.claim(self.record.call_sid, "b", session.call_id, tag)

    @property
    def media(self) -> MediaLegs:
        """Media of the call's legs, to link them with another call's."""
        return self._performer.media

    @property
    def legs(self) -> Sequence[LegView]:
        """The legs of the call that are not over."""
        return control.leg_views(self._machine)

    @property
    def over(self) -> bool:
        """True when the record has its end, though a recording may be incomplete."""
        return self._mailbox.is_closed

    @property
    def private_because(self) -> str | None:
        """Reason why only its parties may hear the call, which cannot be recorded either; None without."""
        policy = self._machine.policy
        return policy.refused_because if RecordingRequested in policy.refused_commands else None

    def post(self, event: Event) -> None:
        """Put an event in the call's queue."""
        self._mailbox.post(event)

    def reject_reason(self, command: LiveCommand) -> str | None:
        """Return why the call cannot carry out a command in its present state, or None."""
        return control.reject_reason(self._machine, command)

    async def run_outbound(self, attempts: Sequence[RouteAttempt], placed: Limits = ()) -> None:
        """Run a call whose record is inserted; ``attempts`` and ``placed`` as ``outbound.Begin`` says."""
        self._inserted = True
        self._performer.places.grant(placed)
        await self._run(self._machine.start_outbound, attempts)

    async def run_inbound(self, reserve_paise: int, refusal: Ending | None) -> None:
        """
        Insert the record of an inbound call, then run or reject the call.

        A call that cannot be recorded, or is beyond a limit, is rejected with 503, so that the caller may try
        elsewhere.
        """
        try:
            refusal = await self._insert(reserve_paise, refusal)
        except BaseException as failure:
            self._performer.sip.reject(
                A_LEG, 503, NORMAL_TEMPORARY_FAILURE, retry_after_s=_retry_after_s(failure)
            )
            await self._wind_up()
            if not isinstance(failure, DomainError):
                raise
            if not self._context.capacity.note(failure):
                self._context.metrics.refused["not_recorded"] += 1
            self.log.info("call rejected: %s", failure.message)
            return
        given_up = self._mailbox.cancelled(A_LEG)
        if refusal is None and given_up is not None:
            # The caller cancelled while the database was slow. Nobody else is notified of the call.
            cause = given_up.cause or ORIGINATOR_CANCEL
            refusal = Ending(CallStatus.NO_ANSWER, cause, "caller", 487, "Request Terminated")
        if refusal is None:
            await self._run(self._machine.start_inbound)
        else:
            await self._run(self._machine.refuse, refusal)

    async def _insert(self, reserve_paise: int, refusal: Ending | None) -> Ending | None:
        services, record = self._context.services, self.record
        records = services.calls
        record.status = CallStatus.INITIATED
        prepare = services.features.prepare.get(record.product or "")
        if prepare is not None:
            await prepare(record)
        events = self._performer.event("call.initiated")
        if refusal is None:
            try:
                await records.insert(
                    record,
                    reserve_paise=reserve_paise,
                    events=events,
                    limited=True,
                    choices=[self._limits] if self._limits else (),
                )
                self._inserted = True
                self._performer.places.grant(self._limits, A_LEG)
                return None
            except InsufficientBalance:
                self.log.info("insufficient balance for the call")
                self._context.metrics.wallet_failures["reserve"] += 1
                refusal = _UNPAID
        await records.insert(record, events=events)
        self._inserted = True
        return refusal

    async def _run(self, start: Callable[..., list[Effect]], *arguments: object) -> None:
        try:
            if not self._guarded(start, *arguments):
                await self._mailbox.run(partial(self._guarded, self._machine.handle))
        finally:
            await self._wind_up()

    def _guarded(self, step: Callable[..., list[Effect]], *arguments: object) -> bool:
        """
        Run one step and perform its effects; True if the call is finished then.

        An internal error ends this call and no other.

        The first time the machine ends the call in good order. Should that fail too, ``_wind_up`` frees all
        resources and writes an end to the record.
        """
        mailbox, performer = self._mailbox, self._performer
        try:
            performer.perform(step(*arguments, mailbox.now()))
            while mailbox.outcomes:  # The outcomes of effects are handled before any other event.
                performer.perform(self._machine.handle(mailbox.outcomes.popleft(), mailbox.now()))
        except Exception:
            # A defect in one transition must still free the resources of the call; a second one is raised.
            self.log.exception("internal error; ending the call")
            if self._failed:
                raise
            self._failed = True
            self._guarded(self._machine.handle, HangupRequested("system", NORMAL_TEMPORARY_FAILURE))
        return self._machine.finished

    async def _wind_up(self) -> None:
        """Free all timers, sessions, streams and tasks, and make sure that the record has its end."""
        self._mailbox.stop_timers()
        try:
            self._performer.release()
        finally:
            self._settle()
            self._mailbox.closed()
        await self._mailbox.wind_up()

    def _settle(self) -> None:
        """Write the record's end, unless that was done in good order."""
        if not self._inserted or self._mailbox.is_closed:
            return
        charge_paise = self.record.price_paise or 0
        if not self.record.status.ended:
            rates, policy = self._context.settings.rates, self._machine.policy
            charge_paise = close_record(self.record, NORMAL_TEMPORARY_FAILURE, rates, policy)
        self._context.services.calls.finish(self.record, charge_paise=charge_paise)


def _retry_after_s(failure: BaseException) -> int:
    if isinstance(failure, ServiceUnavailable) and failure.limit == "trunk":
        return ceil(failure.retry_after_s)
    return _UNRECORDED_RETRY_S
