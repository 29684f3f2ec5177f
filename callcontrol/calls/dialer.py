"""
Dialling one party through its gateways, with failover, as a table of states.

Each attempt is a leg of its own. The ring timeout covers all attempts together; the SIP layer gives up a
gateway that sends nothing for 4 s, so that the next one is tried.
"""

from collections.abc import Sequence
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Final

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.records import Arm, Disarm, RestGateway
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import RouteRefused, Timer, TimerFired
from callcontrol.calls.events.legs import LegAnswered, LegFailed, LegProgress, LegRefused, MediaConnected
from callcontrol.calls.hangup_cause import (
    BEARERCAPABILITY_NOTAVAIL,
    CALL_REJECTED,
    NO_RESPONSE,
    NORMAL_CIRCUIT_CONGESTION,
    RING_TIMEOUT,
    UNREACHABLE,
    HangupCause,
    refused_outcome,
)
from callcontrol.calls.leg import Leg, LegInput, LegParams, OutboundLeg
from callcontrol.ids import LegId
from callcontrol.models import CallStatus, HangupSource
from callcontrol.models.parties import Party, RouteAttempt
from callcontrol.routing.targets import may_fail_over
from sip.machine import Machine, Rules, compile_rules
from sip.values import frozen

if TYPE_CHECKING:
    from callcontrol.calls.steps.base import CallParts


@frozen
class Ending:
    """End of a call, or of a part of it; ``status`` is the status of a call that was not answered."""

    status: CallStatus
    cause: HangupCause
    source: HangupSource
    sip_status: int | None = None
    sip_reason: str | None = None


class FailoverState(IntEnum):
    """States of the dialer, in order."""

    READY = 0
    DIALING = 1
    ANSWERED = 2
    FAILED = 3


class FailoverInput(IntEnum):
    """Inputs of the dialer."""

    BEGIN = auto()
    PROGRESS = auto()
    ANSWERED = auto()
    NEXT = auto()
    """An attempt failed, and another gateway may be tried."""
    FAILED = auto()
    """An attempt failed for good, or was the last one."""
    TIMEOUT = auto()
    """The party rang for too long."""
    ABANDON = auto()
    """Command: stop trying."""


class GatewayFailover(Machine[FailoverState]):
    """Gateway failover for one party; no I/O, no clock."""

    def __init__(self, party: Party, call: "CallParts") -> None:
        self.party = party
        self.state = FailoverState.READY
        self.leg: Leg | None = None
        """The leg being tried, later the answered one, or the leg that replaced it."""
        self.ending: Ending | None = None
        """Ending of the call when the party was not reached."""
        self._call = call
        self._attempts: list[RouteAttempt] = []

    def begin(self, attempts: Sequence[RouteAttempt]) -> list[Effect]:
        """Dial the first of the attempts, at least one."""
        self._attempts = list(attempts)
        return self.trigger(FailoverInput.BEGIN)

    def abandon(self, cause: HangupCause) -> list[Effect]:
        """Stop trying; hang up the leg being tried, or the answered one."""
        return self.trigger(FailoverInput.ABANDON, LegParams(cause=cause))

    def owns(self, leg: LegId) -> bool:
        """True for the leg being tried, or the answered one."""
        return self.leg is not None and self.leg.id == leg

    def handle(self, event: Event) -> list[Effect]:
        """Handle one event; ignore events of other legs."""
        match event:
            case LegProgress() if self.owns(event.leg):
                return self.trigger(FailoverInput.PROGRESS, LegParams(event.body, event.status))
            case LegAnswered() if self.owns(event.leg):
                assert self.leg is not None
                return self.leg.handle(LegInput.ANSWERED, LegParams(event.body))
            case MediaConnected() if self.owns(event.leg):
                return self.trigger(FailoverInput.ANSWERED)
            case LegFailed() if self.owns(event.leg):
                return self._failed(event)
            case LegRefused() if self.owns(event.leg):
                return self._refused(event)
            case TimerFired(Timer.RING):
                return self.trigger(FailoverInput.TIMEOUT)
        return []

    def _failed(self, event: LegFailed) -> list[Effect]:
        assert self.leg is not None
        assert isinstance(self.leg, OutboundLeg)
        effects = self.leg.handle(LegInput.LOST)
        if event.retry_after_s is not None and event.status in (500, 503):
            effects.append(RestGateway(self.leg.attempt.gateway.gateway_sid, event.retry_after_s))
        again = bool(self._attempts) and may_fail_over(event.status, event.kind, rang=self.leg.rang)
        if not again:
            self.ending = _ending_of(event)
        effects += self.trigger(FailoverInput.NEXT if again else FailoverInput.FAILED)
        return effects

    def _refused(self, event: LegRefused) -> list[Effect]:
        assert self.leg is not None
        ports = event.problem == "ports"
        cause = NORMAL_CIRCUIT_CONGESTION if ports else BEARERCAPABILITY_NOTAVAIL
        self.ending = Ending(CallStatus.FAILED, cause, "system" if ports else "carrier")
        return self.leg.handle(LegInput.REFUSED) + self.trigger(FailoverInput.FAILED)

    def _dial_first(self, params: LegParams) -> list[Effect]:
        return [Arm(Timer.RING, self.party.ring_timeout_s), *self._dial_next(params)]

    def _dial_next(self, _: LegParams) -> list[Effect]:
        self.leg = self._call.make_leg(self._attempts.pop(0), self.party)
        return self.leg.handle(LegInput.START)

    def _progress(self, params: LegParams) -> list[Effect]:
        assert self.leg is not None
        return self.leg.handle(LegInput.PROGRESS, params)

    def _answered(self, _: LegParams) -> list[Effect]:
        assert self.leg is not None
        return [Disarm(Timer.RING), *self.leg.handle(LegInput.CONNECTED)]

    def _failed_for_good(self, _: LegParams) -> list[Effect]:
        return [Disarm(Timer.RING)]

    def _ring_timeout(self, _: LegParams) -> list[Effect]:
        assert self.leg is not None
        outcome = RING_TIMEOUT
        self.ending = Ending(outcome.status, outcome.cause, "system", 487, "Request Terminated")
        return self.leg.handle(LegInput.HANG_UP, LegParams(cause=outcome.cause))

    def _abandon(self, params: LegParams) -> list[Effect]:
        return [Disarm(Timer.RING), *self._drop(params)]

    def _drop(self, params: LegParams) -> list[Effect]:
        assert self.leg is not None
        return self.leg.handle(LegInput.HANG_UP, params)

    def _quiet(self, _: LegParams) -> list[Effect]:
        return []


def _ending_of(event: LegFailed) -> Ending:
    """Map the last failure to an ending; only a busy or no-answer response counts as the callee's."""
    source: HangupSource = "carrier"
    if event.kind == "timeout":
        outcome = NO_RESPONSE
    elif event.kind in ("transport", "resolve"):
        outcome = UNREACHABLE
    elif event.kind == "full":
        return Ending(CallStatus.FAILED, NORMAL_CIRCUIT_CONGESTION, "system", 503, event.reason)
    else:
        outcome = refused_outcome(event.status, event.cause)
        if outcome.status in (CallStatus.BUSY, CallStatus.NO_ANSWER):
            source = "callee"
    return Ending(outcome.status, outcome.cause, source, event.status or None, event.reason or None)


def unroutable(refused: RouteRefused) -> Ending:
    """Return the ending for a party without a route."""
    source: HangupSource = "system" if refused.cause is CALL_REJECTED else "carrier"
    return Ending(CallStatus.FAILED, refused.cause, source)


_S, _I = FailoverState, FailoverInput
RULES: Final[Rules[FailoverState, FailoverInput]] = {
    (_S.READY, _I.BEGIN): (_S.DIALING, GatewayFailover._dial_first),
    (_S.READY, _I.ABANDON): (_S.FAILED, GatewayFailover._quiet),
    (_S.DIALING, _I.PROGRESS): (_S.DIALING, GatewayFailover._progress),
    (_S.DIALING, _I.ANSWERED): (_S.ANSWERED, GatewayFailover._answered),
    (_S.DIALING, _I.NEXT): (_S.DIALING, GatewayFailover._dial_next),
    (_S.DIALING, _I.FAILED): (_S.FAILED, GatewayFailover._failed_for_good),
    (_S.DIALING, _I.TIMEOUT): (_S.FAILED, GatewayFailover._ring_timeout),
    (_S.DIALING, _I.ABANDON): (_S.FAILED, GatewayFailover._abandon),
    (_S.ANSWERED, _I.ABANDON): (_S.FAILED, GatewayFailover._drop),
}
IGNORED: Final = frozenset(
    {(_S.READY, what) for what in FailoverInput if what not in (_I.BEGIN, _I.ABANDON)}
    | {(_S.DIALING, _I.BEGIN)}
    | {(_S.ANSWERED, what) for what in FailoverInput if what is not _I.ABANDON}
    | {(_S.FAILED, what) for what in FailoverInput}
)

GatewayFailover.ROWS = compile_rules(RULES)
