"""
State machine of a call: runs a plan on legs, from the first INVITE to the settled record.

The status of a call is a table of states. Everything that happens to a call is one event to ``CallMachine``,
which returns the effects to perform; it knows no socket, no clock and no database. Legs, the dialer, bridges
and agent streams are state machines of their own (``leg``, ``dialer``, ``steps.bridge``,
``steps.agent_stream``).
"""

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from enum import IntEnum, auto
from functools import cached_property
from typing import Any, Final

from callcontrol.calls.charges import CallCharges, Rates
from callcontrol.calls.dialer import Ending, FailoverState, GatewayFailover
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import DetectMachine
from callcontrol.calls.effects.records import Arm, Disarm, Finish, Save
from callcontrol.calls.events import Event
from callcontrol.calls.events.agent import AgentTransfer
from callcontrol.calls.events.answers import ReserveExtended, ReserveRefused, Timer, TimerFired
from callcontrol.calls.events.commands import RedirectRequested
from callcontrol.calls.events.instructions import InstructionsFailed, InstructionsReceived
from callcontrol.calls.events.legs import LegEnded, LegProgress, MediaConnected, OfferTaken
from callcontrol.calls.events.media import (
    DigitReceived,
    DigitsSent,
    MessageEnded,
    RecordingEnded,
    SentenceHeard,
    TranscriptionEnded,
)
from callcontrol.calls.events.transfers import JoinRequested, ReplacementCalled, TransferRequested
from callcontrol.calls.hangup_cause import (
    ALLOTTED_TIMEOUT,
    BALANCE_EXHAUSTED,
    NORMAL_CLEARING,
    rejection_of,
)
from callcontrol.calls.leg import InboundLeg, Leg, LegInput, LegParams, LegState, OutboundLeg
from callcontrol.calls.leg_events import LEG_HANDLERS
from callcontrol.calls.live import control
from callcontrol.calls.plan import Gather, Hangup, Plan, Reject, Step, Stream
from callcontrol.calls.product import NO_PRODUCT, CallProgress, ProductPolicy
from callcontrol.calls.recording import RECORDING_LIMIT_S, CallMessages, CallRecording
from callcontrol.calls.records.end import ending_of, write_end
from callcontrol.calls.steps.agent_stream import AgentStep
from callcontrol.calls.steps.base import DtmfTypeAhead, RunningStep, StepMakers
from callcontrol.calls.steps.webhook import CallWebhooks
from callcontrol.calls.transcription import CallTranscription
from callcontrol.calls.transfers.manager import CallTransfers
from callcontrol.clock import WallClock
from callcontrol.ids import A_LEG, LegId, stream_sid
from callcontrol.models import CallRecord, CallStatus
from callcontrol.models.parties import Party, RouteAttempt
from sip.machine import Machine, Rules, compile_rules

_MEDIA_PARTS: Final = ("recording", "messages", "transcription")


class CallState(IntEnum):
    """States of a call, in order; ``ENDED`` stands for all final statuses."""

    QUEUED = 0
    INITIATED = 1
    RINGING = 2
    IN_PROGRESS = 3
    ENDED = 4


class CallTransition(IntEnum):
    """Inputs that change the status of a call."""

    START = auto()
    RING = auto()
    ANSWER = auto()
    END = auto()


class CallMachine(Machine[CallState]):
    """
    One call.

    ``record`` is updated in place during the call; ``reserved_paise`` is the amount that the wallet already
    holds for it. All times passed in are monotonic seconds.
    """

    def __init__(
        self,
        record: CallRecord,
        plan: Plan,
        *,
        rates: Rates,
        clock: WallClock,
        step_makers: StepMakers,
        policy: ProductPolicy = NO_PRODUCT,
        reserved_paise: int = 0,
        stream_protocol: str = "exotel",
    ) -> None:
        self.record = record
        self._step_makers = step_makers
        self.policy = policy
        """Policy of the call's product."""
        if policy is not NO_PRODUCT:
            rates = policy.rates(record, rates)
        self.progress = CallProgress() if policy is NO_PRODUCT else policy.progress(record, rates)
        self.stream_protocol = stream_protocol
        """Stream protocol of agents whose stream settings name none."""
        self.plan = plan
        self.state = CallState.QUEUED
        self.legs: dict[LegId, Leg] = {}
        self._a_id: LegId = A_LEG
        self._leg_count = 1 if plan.dial is None else 0
        self._clock = clock
        self._now = clock.monotonic_s
        self._charges = CallCharges(rates, reserved_paise)
        self._early = False
        self._answered_at: float | None = None
        self._limit_ordered = False
        self._steps = list(plan.steps)
        self._stream_count = 0
        self._request_count = 0
        self._step: RunningStep | None = None
        self.last_ending: Ending | None = None
        self._failover: GatewayFailover | None = None
        self._ending: Ending | None = None
        self._transfers: CallTransfers | None = None
        self._webhooks: CallWebhooks | None = None

    @property
    def _parts(self) -> "CallMachine":
        """Weak reference for the call's parts, so that all are freed as soon as the call is over."""
        parts: CallMachine = weakref.proxy(self)
        return parts

    @cached_property
    def recording(self) -> CallRecording:
        """The recording of the call."""
        return CallRecording(self.record)

    @cached_property
    def messages(self) -> CallMessages:
        """The messages left on the call."""
        return CallMessages(self.record)

    @cached_property
    def transcription(self) -> CallTranscription:
        """The transcription of the call."""
        return CallTranscription(self._parts)

    @cached_property
    def keys(self) -> DtmfTypeAhead:
        """The keys that the first party pressed ahead."""
        return DtmfTypeAhead()

    @property
    def transfers(self) -> CallTransfers:
        """The transfers of the call."""
        if self._transfers is None:
            self._transfers = CallTransfers(self._parts)
        return self._transfers

    @property
    def webhooks(self) -> CallWebhooks:
        """The requests for instructions that the API ordered."""
        if self._webhooks is None:
            self._webhooks = CallWebhooks(self._parts)
        return self._webhooks

    # --- what the runner calls ------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """True after the call has ended and no recording, message or sentence of it is pending."""
        return self.state is _ENDED and not self._waits_for_media

    @property
    def _waits_for_media(self) -> bool:
        for name in _MEDIA_PARTS:
            part = self.__dict__.get(name)  # What the call never had is not built for this.
            if part is not None and part.pending:
                return True
        return False

    def start_inbound(self, now: float) -> list[Effect]:
        """Start with a caller whose INVITE is pending; the record was inserted as initiated."""
        self._now = now
        leg = self.legs[A_LEG] = InboundLeg(A_LEG)
        self.state, self.record.status = CallState.INITIATED, CallStatus.INITIATED
        return leg.handle(LegInput.START)

    def start_outbound(self, attempts: Sequence[RouteAttempt], now: float) -> list[Effect]:
        """Start by dialling the plan's party through the given gateways, at least one."""
        self._now = now
        assert self.plan.dial is not None
        self._failover = GatewayFailover(self.plan.dial, self._parts)
        return self.trigger(CallTransition.START) + self._failover.begin(attempts)

    def refuse(self, ending: Ending, now: float) -> list[Effect]:
        """Begin and end at once: reject a caller whose call cannot be accepted."""
        self._now = now
        self.legs[A_LEG] = InboundLeg(A_LEG)
        self.state, self.record.status = CallState.INITIATED, CallStatus.INITIATED
        return self.end(ending)

    @property
    def answered(self) -> bool:
        """True after the call was answered, also when it has ended since."""
        return self._answered_at is not None

    def limit_time(self, limit_s: float) -> Iterator[Effect]:
        """Set another time limit, counted from the answer; a limit that has passed ends the call at once."""
        self.plan = replace(self.plan, time_limit_s=limit_s)
        self._limit_ordered = True
        if (left_s := self.ordered_time_s) is not None:
            yield Arm(Timer.TIME_LIMIT, left_s)

    @property
    def ordered_time_s(self) -> float | None:
        """Seconds left of a time limit set during the call; None without one, or before the answer."""
        if self._answered_at is None or not self._limit_ordered:
            return None
        return max(0.0, self._answered_at + self.plan.time_limit_s - self._now)

    @property
    def now_s(self) -> float:
        """Monotonic time of the event being handled."""
        return self._now

    @property
    def wall_time(self) -> datetime:
        """Wall-clock time of the event being handled, as written to records."""
        return self._clock.at(self._now)

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle one event and return the effects to perform."""
        if now > self._now:
            self._now = now
        if self.state is _ENDED:
            return [*self._afterwards(event)]
        found = _HANDLERS.get(type(event), CallMachine.forward)(self, event)
        unshown = self.record.status_webhook_url is None
        effects = [*found] if unshown else [*self._with_snapshots(found)]
        if self._step is not None and self._step.over:
            effects += self._advance()
        if self._charges.grown and self._ending is None:
            effects.append(self._charges.timer(self._now))  # once, also when two legs are up by one answer
        if "transcription" in self.__dict__:
            effects += self._shown(self.transcription.follow(self.legs))
        return effects

    # --- what the steps call (callcontrol.calls.steps.base.CallParts) ---------------------------------------

    @property
    def a_leg(self) -> Leg:
        """The first party's leg; while an outbound call still tries gateways, the leg being tried."""
        return self.legs[self._a_id]

    def make_leg(self, attempt: RouteAttempt, party: Party) -> OutboundLeg:
        """Create a leg of the call; forget legs that have ended, except the first party's."""
        reaching_a = self._failover is not None and self._failover.state < FailoverState.ANSWERED
        for leg_id in [number for number, leg in self.legs.items() if leg.over and number != self._a_id]:
            del self.legs[leg_id]
        # The peer leg must stay: the first party may have left a call that it transfers.
        peer_leg = next((number for number in (self._a_id, *self.legs) if self.is_up(number)), self._a_id)
        leg = OutboundLeg(self._leg_count, attempt, party, peer_leg=None if reaching_a else peer_leg)
        self._leg_count += 1
        self.legs[leg.id] = leg
        if reaching_a:
            self._a_id = leg.id
            self.record.carrier_sid = attempt.carrier.carrier_sid or None
            self.record.gateway_sid = attempt.gateway.gateway_sid or None
        return leg

    def is_up(self, leg_id: LegId) -> bool:
        """True while a leg exists and is answered."""
        leg = self.legs.get(leg_id)
        return leg is not None and leg.state is LegState.UP

    def ring(self, status: int = 180, *, early_media: bool = False) -> list[Effect]:
        """Send ringing or early media to a caller who is not answered yet."""
        leg = self.legs[self._a_id]
        if not isinstance(leg, InboundLeg) or leg.up:
            return []
        effects = leg.handle(LegInput.RING, LegParams(b"", status, early_media))
        effects += self.trigger(CallTransition.RING)
        return effects + self._early_media() if early_media else effects

    def answer(self) -> list[Effect]:
        """Answer a waiting caller; a party we dial answers by itself."""
        leg = self.legs[self._a_id]
        if not isinstance(leg, InboundLeg) or leg.up:
            return []
        return leg.handle(LegInput.ACCEPT) + self.trigger(CallTransition.ANSWER)

    # --- what transfers call --------------------------------------------------------------------------------

    @property
    def step(self) -> RunningStep | None:
        """The current step."""
        return self._step

    def next_stream_sid(self) -> str:
        """The identifier of the next agent stream of the call."""
        self._stream_count += 1
        return stream_sid(self.record.call_sid, self._stream_count)

    def next_request_id(self) -> int:
        """Return the number of the next request to the customer's server, or message, counted from 1."""
        self._request_count += 1
        return self._request_count

    def set_next_steps(self, steps: Sequence[Step]) -> None:
        """Set the steps that follow the current one, instead of the rest of the plan."""
        self._steps = list(steps)

    def abort_step(self, steps: Sequence[Step]) -> Iterator[Effect]:
        """Abort the current step; do these steps instead of it and of the rest of the plan."""
        if self._step is not None and not self._step.over:
            yield from self._step.abort()
        for leg in self.legs.values():
            if leg.over:
                self.stop_charging(leg.id)
        self.set_next_steps(steps)
        self.last_ending = None
        yield from self._next()

    def make_inbound_leg(self) -> InboundLeg:
        """Create a leg for a caller that joins the call."""
        leg = self.legs[self._leg_count] = InboundLeg(self._leg_count)
        self._leg_count += 1
        return leg

    def replace_a_leg(self, leg: LegId, *, joins_call: bool = True) -> None:
        """Make another leg the first one; drop the remaining steps, which were for the party that left."""
        self._charges.replace_a_leg(self._a_id, None if joins_call else self._now)
        self._a_id = leg
        self._steps.clear()

    def replace_step(self, step: RunningStep) -> None:
        """Replace the current step; the rest of the plan still follows."""
        self._step = step

    def charge(self, leg: Leg | None, *, instead_of: LegId) -> None:
        """Stop charging the leg ``instead_of``, and charge ``leg``, if any, from now on."""
        self.stop_charging(instead_of)
        if leg is not None:
            self._charges.start(leg.id, self._now, inbound=isinstance(leg, InboundLeg))

    def revert_answer(self) -> None:
        """Revert the answer: the caller cancelled before our 200 was sent, so nothing is charged."""
        if self._answered_at is not None and not self._charges.a_leg_replaced:
            self._answered_at = self.record.answered_at = None
            self._charges.meter.clear()
            self.progress.revert_answer()

    def stop_charging(self, leg: LegId) -> None:
        """Stop charging a leg."""
        self._charges.meter.stop(leg, self._now)

    # --- events ---------------------------------------------------------------------------------------------

    def _shown(self, effects: Iterable[Effect]) -> Iterable[Effect]:
        """Attach the view of the call to each event for a webhook, before later effects change its status."""
        return effects if self.record.status_webhook_url is None else self._with_snapshots(effects)

    def _with_snapshots(self, effects: Iterable[Effect]) -> Iterator[Effect]:
        for effect in effects:
            if isinstance(effect, Save) and effect.event is not None and effect.shown is None:
                yield replace(effect, shown=self.policy.shape(self.record))
            else:
                yield effect

    def forward(self, event: Event) -> list[Effect]:
        """Pass an event to its waiting parts: the first party's dialer, transfers and the current step."""
        effects: list[Effect] = []
        if self._failover is not None and self._failover.state is FailoverState.DIALING:
            effects += self._shown(self._reaching(self._failover, event))
        if self._transfers is not None:
            effects += self._shown(self._transfers.handle(event))
        step = self._step
        if step is not None and self.state is not _ENDED:
            if step.keeps_keys and isinstance(event, DigitReceived) and event.leg == self._a_id:
                self.keys.append(event)
            effects += self._shown(step.handle(event))
        return effects

    def _reaching(self, failover: GatewayFailover, event: Event) -> Iterator[Effect]:
        yield from failover.handle(event)
        if failover.state is FailoverState.ANSWERED:
            yield from self.trigger(CallTransition.ANSWER)
            if isinstance(self._step, AgentStep):
                yield from self._step.party_up()
            else:
                yield from self._next()
        elif failover.state is FailoverState.FAILED:
            assert failover.ending is not None
            yield from self.end(failover.ending)
        elif isinstance(event, LegProgress) and failover.owns(event.leg):
            yield from self.trigger(CallTransition.RING)
            if event.body:
                yield from self._early_media()
            if self._step is None and self._steps and isinstance(self._steps[0], Stream):
                yield from self._next()  # connect the agent while the party rings

    def _connected(self, event: MediaConnected) -> list[Effect]:
        effects = self.forward(event)
        leg = self.legs.get(event.leg)
        if leg is not None and leg.up and not self._charges.meter.runs(leg.id):
            self._charges.start(leg.id, self._now, inbound=False)
        return effects

    def _offer_taken(self, event: OfferTaken) -> list[Effect]:
        return self._next() if event.leg == self._a_id and self._step is None else self.forward(event)

    def is_transfer(self, event: LegEnded) -> bool:
        """Return True for the BYE of a party that has transferred the other: it does not end the call."""
        return self._transfers is not None and self._transfers.claims(event)

    def _timer(self, event: TimerFired) -> list[Effect]:
        if event.timer is Timer.TIME_LIMIT:
            return self.end(Ending(CallStatus.COMPLETED, ALLOTTED_TIMEOUT, "system"))
        if event.timer is not Timer.MONEY:
            return self.forward(event)
        effect = self._charges.due(self._now)
        if effect is not None:
            return [effect]
        return self.end(Ending(CallStatus.COMPLETED, BALANCE_EXHAUSTED, "system"))

    def _message_ended(self, event: MessageEnded) -> Iterator[Effect]:
        yield from self.messages.ended(event)
        yield from self.forward(event)

    def _afterwards(self, event: Event) -> Iterator[Effect]:
        """Handle what matters after the end: the recording, a message, and the parties' last words."""
        match event:
            case RecordingEnded() | SentenceHeard() | TranscriptionEnded():
                yield from _HANDLERS[type(event)](self, event)
            case MessageEnded():
                yield from self.messages.ended(event)
            case TimerFired(Timer.RECORDING):
                yield from self.recording.give_up()
                self.messages.give_up()
                self.transcription.give_up()
            case _:
                return
        if self.finished:
            yield Disarm(Timer.RECORDING)

    # --- the plan -------------------------------------------------------------------------------------------

    def _advance(self) -> list[Effect]:
        """Move to the next step while the current one is over."""
        effects: list[Effect] = []
        while self._step is not None and self._step.over and self.state is not _ENDED:
            if self._step.successor is not None:
                self._step = self._step.successor
                continue
            self.last_ending = self._step.ending
            effects += self._next()
        return effects

    def _next(self) -> list[Effect]:
        """Begin the next step; end the call after the last one, or when the first party is not there."""
        if not self._steps or self.a_leg.over:
            return self.end(self.last_ending or Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "system"))
        if self.last_ending is not None and self._failover is not None and not self.a_leg.up:
            self._step = None  # the agent failed while the party rings: the answer begins the next step
            return []
        effects: list[Effect] = []
        if self._transfers is not None:
            effects += self._shown(self._transfers.stop())  # the transfer's party has left
        step = self._steps.pop(0)
        if isinstance(step, Hangup | Reject):
            return effects + self.end(ending_of(step))
        running = self._step = self._step_makers[type(step)](self._parts, step)
        if not running.keeps_keys and not isinstance(step, Gather):
            self.__dict__.pop("keys", None)  # they were not meant for the steps after this one
        if running.needs_answer:
            effects += self._shown(self.answer())
        elif isinstance(step, Stream):
            effects += self._shown(self.ring())
        effects += self._shown(running.begin())
        return effects

    # --- the status -----------------------------------------------------------------------------------------

    def _initiated(self, _: None) -> list[Effect]:
        self.record.status = CallStatus.INITIATED
        return [Save("call.initiated")]

    def _ringing(self, _: None) -> list[Effect]:
        self.record.status = CallStatus.RINGING
        self.record.ringing_at = self.wall_time
        self.progress.first_rings()
        return [Save("call.ringing")]

    def _early_media(self) -> list[Effect]:
        """Report early media once; the call stays ringing, so this is only an event."""
        if self._early:
            return []
        self._early = True
        return [Save("call.early-media")]

    def _answered(self, _: None) -> list[Effect]:
        record, plan = self.record, self.plan
        self._answered_at = self._now
        record.status = CallStatus.IN_PROGRESS
        record.answered_at = self.wall_time
        self.progress.first_answers(record.answered_at)
        record.sip_status, record.sip_reason = 200, "OK"
        effects: list[Effect] = [
            Save("call.answered"),
            Arm(Timer.TIME_LIMIT, plan.time_limit_s),
        ]
        self._charges.start(self._a_id, self._now, inbound=record.direction == "inbound")
        if plan.record:
            effects += self.recording.start(self._a_id, plan.recording_channels)
        if plan.machine_detection != "off":
            effects.append(DetectMachine(self._a_id))
        if plan.transcribe is not None:
            self.transcription.start(plan.transcribe)
        return effects

    def end(self, ending: Ending) -> list[Effect]:
        """End all parts of the call that are not over, with one reason."""
        if self.state is _ENDED:
            return []
        self._ending = ending
        effects: list[Effect] = []
        if self._transfers is not None:
            effects += self._shown(self._transfers.stop())
        if self._webhooks is not None:
            effects += self._shown(self._webhooks.stop())
        if self._step is not None and not self._step.over:
            effects += self._shown(self._step.stop(ending))
        status = rejection_of(ending.cause, ending.sip_status)
        for leg in [*self.legs.values()]:
            rejects = isinstance(leg, InboundLeg) and not leg.up and not leg.over
            if rejects and ending.sip_status is None:
                ending = self._ending = replace(ending, sip_status=status)
            effects += leg.handle(LegInput.HANG_UP, LegParams(b"", status, False, ending.cause))
        return effects + self.trigger(CallTransition.END)

    def _ended(self, _: None) -> list[Effect]:
        record, ending = self.record, self._ending
        assert ending is not None
        answered_for_s = self._now - self._answered_at if self._answered_at is not None else None
        write_end(record, ending, self.wall_time, answered_for_s=answered_for_s)
        self.progress.ended(ending, self._now)
        record.bill_duration_sec = self._charges.billed_s(self._a_id, self._now)
        finish = Finish(self._charges.meter.charge_paise(self._now))
        return [finish, Arm(Timer.RECORDING, RECORDING_LIMIT_S)] if self._waits_for_media else [finish]


_HANDLERS: Final[dict[type[Event], Callable[[CallMachine, Any], Iterable[Effect]]]] = {
    **LEG_HANDLERS,
    **dict.fromkeys(control.COMMANDS, lambda call, command: control.handle(call._parts, command)),
    DigitsSent: lambda call, event: () if event.by_api else call.forward(event),
    OfferTaken: CallMachine._offer_taken,
    MediaConnected: CallMachine._connected,
    AgentTransfer: lambda call, event: call.transfers.agent_requested(event),
    TimerFired: CallMachine._timer,
    RecordingEnded: lambda call, event: call.recording.ended(event),
    MessageEnded: CallMachine._message_ended,
    SentenceHeard: lambda call, event: call.transcription.heard(event),
    TranscriptionEnded: lambda call, event: call.transcription.ended(event),
    ReserveExtended: lambda call, event: [call._charges.extended(event.total_paise, call.now_s)],
    ReserveRefused: lambda call, _: [call._charges.refused(call.now_s)],
    RedirectRequested: lambda call, event: call.webhooks.requested(event),
    InstructionsReceived: lambda call, event: call.webhooks.received(event),
    InstructionsFailed: lambda call, event: call.webhooks.failed(event),
    TransferRequested: lambda call, event: call.transfers.transfer_requested(event),
    ReplacementCalled: lambda call, event: call.transfers.replacement_called(event),
    JoinRequested: lambda call, event: call.transfers.join_requested(event),
}

_S, _I, _ENDED = CallState, CallTransition, CallState.ENDED
RULES: Final[Rules[CallState, CallTransition]] = {
    (_S.QUEUED, _I.START): (_S.INITIATED, CallMachine._initiated),
    (_S.INITIATED, _I.RING): (_S.RINGING, CallMachine._ringing),
    (_S.INITIATED, _I.ANSWER): (_S.IN_PROGRESS, CallMachine._answered),
    (_S.INITIATED, _I.END): (_S.ENDED, CallMachine._ended),
    (_S.RINGING, _I.ANSWER): (_S.IN_PROGRESS, CallMachine._answered),
    (_S.RINGING, _I.END): (_S.ENDED, CallMachine._ended),
    (_S.IN_PROGRESS, _I.END): (_S.ENDED, CallMachine._ended),
}
IGNORED: Final = frozenset(
    {(_S.QUEUED, _I.RING), (_S.QUEUED, _I.ANSWER), (_S.QUEUED, _I.END)}
    | {(_S.INITIATED, _I.START), (_S.RINGING, _I.START), (_S.RINGING, _I.RING)}
    | {(_S.IN_PROGRESS, _I.START), (_S.IN_PROGRESS, _I.RING), (_S.IN_PROGRESS, _I.ANSWER)}
    | {(_S.ENDED, what) for what in CallTransition}
)

CallMachine.ROWS = compile_rules(RULES)
