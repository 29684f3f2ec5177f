"""Handlers for events of legs (failure, end, offer, digit): a part of ``callcontrol.calls.call``."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import StopDetecting
from callcontrol.calls.effects.records import Save, unheard
from callcontrol.calls.events import Event
from callcontrol.calls.events.legs import (
    LegCancelled,
    LegConfirmed,
    LegEnded,
    LegFailed,
    LegOffered,
    LegRefused,
)
from callcontrol.calls.events.media import (
    DigitReceived,
    GreetingOver,
    MachineDetected,
    MediaSilent,
    TrackFailed,
)
from callcontrol.calls.hangup_cause import (
    BEARERCAPABILITY_NOTAVAIL,
    MACHINE_DETECTED,
    MEDIA_TIMEOUT,
    NORMAL_CIRCUIT_CONGESTION,
    ORIGINATOR_CANCEL,
    RECOVERY_ON_TIMER_EXPIRE,
)
from callcontrol.calls.leg import InboundLeg, LegInput, LegParams
from callcontrol.ids import LegId
from callcontrol.models import CallStatus, HangupSource

if TYPE_CHECKING:
    from callcontrol.calls.call import CallMachine


def _refused(call: "CallMachine", event: LegRefused) -> list[Effect]:
    """Reject a caller whose SDP is not usable with 488, or with 503 when no port of ours is free."""
    first = call.a_leg
    if event.leg != first.id or not isinstance(first, InboundLeg):
        return call.forward(event)
    ports = event.problem == "ports"
    status = 503 if ports else 488
    cause = NORMAL_CIRCUIT_CONGESTION if ports else BEARERCAPABILITY_NOTAVAIL
    effects = first.handle(LegInput.REFUSED, LegParams(status=status))
    return effects + call.end(Ending(CallStatus.FAILED, cause, "system", status))


def _cancelled(call: "CallMachine", event: LegCancelled) -> list[Effect]:
    effects = _lost(call, event.leg)
    if event.leg != call.a_leg.id:
        return effects + call.forward(event)
    call.revert_answer()
    cause = event.cause or ORIGINATOR_CANCEL
    ending = Ending(CallStatus.NO_ANSWER, cause, "caller", 487, "Request Terminated")
    return effects + call.end(ending)


def _ended(call: "CallMachine", event: LegEnded) -> list[Effect]:
    claimed = call.is_transfer(event)
    effects = _lost(call, event.leg)
    if claimed:
        return [*effects, *call.transfers.handle(event)]
    first = call.a_leg
    if event.leg != first.id:
        return effects + call.forward(event)
    party: HangupSource = "caller" if isinstance(first, InboundLeg) else "callee"
    source: HangupSource = party if event.clean else "carrier"
    return effects + call.end(Ending(CallStatus.COMPLETED, event.hangup_cause, source))


def _lost(call: "CallMachine", leg_id: LegId) -> list[Effect]:
    leg = call.legs.get(leg_id)
    if leg is None:
        return []
    call.stop_charging(leg_id)
    return leg.handle(LegInput.LOST)


def _failed(call: "CallMachine", event: LegFailed) -> list[Effect]:
    """End the call when the caller's transport failed before the answer; the dialer handles legs we dial."""
    if event.leg != call.a_leg.id or not isinstance(call.a_leg, InboundLeg):
        return call.forward(event)
    effects = _lost(call, event.leg)
    return effects + call.end(Ending(CallStatus.FAILED, RECOVERY_ON_TIMER_EXPIRE, "carrier"))


def _offered(call: "CallMachine", event: LegOffered) -> list[Effect]:
    leg = call.legs.get(event.leg)
    return [] if leg is None else leg.handle(LegInput.OFFERED, LegParams(event.body))


def _confirmed(call: "CallMachine", event: LegConfirmed) -> list[Effect]:
    leg = call.legs.get(event.leg)
    return [] if leg is None else leg.handle(LegInput.CONFIRMED, LegParams(event.body))


def _digit(call: "CallMachine", event: DigitReceived) -> Iterator[Effect]:
    party = "a" if event.leg == call.a_leg.id else "b"
    yield Save("call.dtmf", {"digit": event.digit, "duration_ms": event.duration_ms, "leg": party})
    yield from call.forward(event)


def _silent(call: "CallMachine", event: MediaSilent) -> Iterator[Effect]:
    leg = call.legs.get(event.leg)
    if leg is not None and not leg.over:
        party = "a" if event.leg == call.a_leg.id else "b"
        reason = f"no RTP from leg {party} for {event.silent_s:.0f} s"
        yield from call.end(Ending(CallStatus.COMPLETED, MEDIA_TIMEOUT, "system", sip_reason=reason))


def _detected(call: "CallMachine", event: MachineDetected) -> Iterator[Effect]:
    """Record who answered; later tones of the same leg change nothing."""
    record = call.record
    if event.leg != call.a_leg.id or record.answered_by is not None:
        return
    record.answered_by = event.answered_by
    yield Save("call.machine_detection", {"reason": event.reason, "detection_ms": event.took_ms})
    if event.answered_by != "machine":
        yield StopDetecting(event.leg)
    elif call.plan.machine_detection == "hangup":
        yield from call.end(Ending(CallStatus.COMPLETED, MACHINE_DETECTED, "system"))


def _greeted(call: "CallMachine", event: GreetingOver) -> Iterator[Effect]:
    """Report that the machine records from now on."""
    if event.leg == call.a_leg.id:
        yield Save("call.greeting_ended", {"reason": event.reason, "detection_ms": event.at_ms})
        yield StopDetecting(event.leg)


def _unheard(call: "CallMachine", event: TrackFailed) -> Iterator[Effect]:
    """Report a sound of a track that its party does not hear."""
    yield unheard("dub", event.problem, event.url)


LEG_HANDLERS: Final[dict[type[Event], Callable[["CallMachine", Any], Iterable[Effect]]]] = {
    LegRefused: _refused,
    LegCancelled: _cancelled,
    LegEnded: _ended,
    LegFailed: _failed,
    LegOffered: _offered,
    LegConfirmed: _confirmed,
    DigitReceived: _digit,
    MediaSilent: _silent,
    MachineDetected: _detected,
    GreetingOver: _greeted,
    TrackFailed: _unheard,
}
"""Handlers by event."""
