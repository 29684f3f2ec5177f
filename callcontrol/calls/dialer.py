"""
Dialling one party through its gateways, with failover, as a table of states.

Each attempt is a leg of its own. The ring timeout covers all attempts together; the SIP layer gives up a
gateway that sends nothing for 4 s, so that the next one is tried.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Final, Protocol

from callcontrol.calls.effects import Arm, Disarm, Effect, RestGateway
from callcontrol.calls.events import (
    Event,
    LegAnswered,
    LegFailed,
    LegProgress,
    LegRefused,
    MediaConnected,
    RouteRefused,
    Timer,
    TimerFired,
)
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
from callcontrol.calls.leg import NO_FACTS, Leg, LegFacts, LegInput, OutboundLeg
from callcontrol.ids import LegId
from callcontrol.models import CallStatus, HangupSource
from callcontrol.routing.party import Party
from callcontrol.routing.targets import Attempt, may_fail_over


@dataclass(frozen=True, slots=True)
class Ending:
    """End of a call, or of a part of it; ``status`` is the status of a call that was not answered."""

    status: CallStatus
    cause: HangupCause
    source: HangupSource
    sip_status: int | None = None
    sip_reason: str | None = None


class HuntState(IntEnum):
    """States of the dialer, in order."""

    READY = 0
    HUNTING = 1
    WON = 2
    LOST = 3


class HuntInput(IntEnum):
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


class LegMaker(Protocol):
    """Interface of the dialer to its call."""

    def make_leg(self, attempt: Attempt, party: Party) -> OutboundLeg:
        """Create a leg of the call."""


Action = Callable[["Hunt", LegFacts], Iterator[Effect]]


class Hunt:
    """Gateway failover for one party; no I/O, no clock."""

    def __init__(self, party: Party, legs: LegMaker) -> None:
        self.party = party
        self.state = HuntState.READY
        self.leg: Leg | None = None
        """The leg being tried, later the answered one, or the leg that replaced it."""
        self.ending: Ending | None = None
        """Ending of the call when the party was not reached."""
        self._legs = legs
        self._attempts: list[Attempt] = []

    def begin(self, attempts: Sequence[Attempt]) -> list[Effect]:
        """Dial the first of the attempts, at least one."""
        self._attempts = list(attempts)
        return self._take(HuntInput.BEGIN)

    def abandon(self, cause: HangupCause) -> list[Effect]:
        """Stop trying; hang up the leg being tried, or the answered one."""
        return self._take(HuntInput.ABANDON, LegFacts(cause=cause))

    def owns(self, leg: LegId) -> bool:
        """True for the leg being tried, or the answered one."""
        return self.leg is not None and self.leg.id == leg

    def handle(self, event: Event) -> list[Effect]:
        """Handle one event; ignore events of other legs."""
        match event:
            case LegProgress() if self.owns(event.leg):
                return self._take(HuntInput.PROGRESS, LegFacts(event.body, event.status))
            case LegAnswered() if self.owns(event.leg):
                assert self.leg is not None
                return self.leg.handle(LegInput.ANSWERED, LegFacts(event.body))
            case MediaConnected() if self.owns(event.leg):
                return self._take(HuntInput.ANSWERED)
            case LegFailed() if self.owns(event.leg):
                return self._failed(event)
            case LegRefused() if self.owns(event.leg):
                return self._refused(event)
            case TimerFired(Timer.RING):
                return self._take(HuntInput.TIMEOUT)
        return []

    def _take(self, what: HuntInput, facts: LegFacts = NO_FACTS) -> list[Effect]:
        rule = RULES.get((self.state, what))
        if rule is None:  # listed in IGNORED
            return []
        target, action = rule
        assert target >= self.state
        effects = list(action(self, facts))
        self.state = target
        return effects

    def _failed(self, event: LegFailed) -> list[Effect]:
        assert self.leg is not None
        assert isinstance(self.leg, OutboundLeg)
        effects = self.leg.handle(LegInput.LOST)
        if event.retry_after_s is not None and event.status in (500, 503):
            effects.append(RestGateway(self.leg.attempt.gateway.gateway_sid, event.retry_after_s))
        again = bool(self._attempts) and may_fail_over(event.status, event.kind, rang=self.leg.rang)
        if not again:
            self.ending = _ending_of(event)
        effects += self._take(HuntInput.NEXT if again else HuntInput.FAILED)
        return effects

    def _refused(self, event: LegRefused) -> list[Effect]:
        assert self.leg is not None
        ports = event.problem == "ports"
        cause = NORMAL_CIRCUIT_CONGESTION if ports else BEARERCAPABILITY_NOTAVAIL
        self.ending = Ending(CallStatus.FAILED, cause, "system" if ports else "carrier")
        return self.leg.handle(LegInput.REFUSED) + self._take(HuntInput.FAILED)

    def _dial_first(self, facts: LegFacts) -> Iterator[Effect]:
        yield Arm(Timer.RING, self.party.ring_timeout_s)
        yield from self._dial_next(facts)

    def _dial_next(self, _: LegFacts) -> Iterator[Effect]:
        self.leg = self._legs.make_leg(self._attempts.pop(0), self.party)
        yield from self.leg.handle(LegInput.START)

    def _progress(self, facts: LegFacts) -> Iterator[Effect]:
        assert self.leg is not None
        yield from self.leg.handle(LegInput.PROGRESS, facts)

    def _won(self, _: LegFacts) -> Iterator[Effect]:
        assert self.leg is not None
        yield Disarm(Timer.RING)
        yield from self.leg.handle(LegInput.CONNECTED)

    def _lost(self, _: LegFacts) -> Iterator[Effect]:
        yield Disarm(Timer.RING)

    def _gave_up(self, _: LegFacts) -> Iterator[Effect]:
        assert self.leg is not None
        outcome = RING_TIMEOUT
        self.ending = Ending(outcome.status, outcome.cause, "system", 487, "Request Terminated")
        yield from self.leg.handle(LegInput.HANG_UP, LegFacts(cause=outcome.cause))

    def _abandon(self, facts: LegFacts) -> Iterator[Effect]:
        yield Disarm(Timer.RING)
        yield from self._drop(facts)

    def _drop(self, facts: LegFacts) -> Iterator[Effect]:
        assert self.leg is not None
        yield from self.leg.handle(LegInput.HANG_UP, facts)

    def _quiet(self, _: LegFacts) -> Iterator[Effect]:
        yield from ()


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


_S, _I = HuntState, HuntInput
RULES: Final[dict[tuple[HuntState, HuntInput], tuple[HuntState, Action]]] = {
    (_S.READY, _I.BEGIN): (_S.HUNTING, Hunt._dial_first),
    (_S.READY, _I.ABANDON): (_S.LOST, Hunt._quiet),
    (_S.HUNTING, _I.PROGRESS): (_S.HUNTING, Hunt._progress),
    (_S.HUNTING, _I.ANSWERED): (_S.WON, Hunt._won),
    (_S.HUNTING, _I.NEXT): (_S.HUNTING, Hunt._dial_next),
    (_S.HUNTING, _I.FAILED): (_S.LOST, Hunt._lost),
    (_S.HUNTING, _I.TIMEOUT): (_S.LOST, Hunt._gave_up),
    (_S.HUNTING, _I.ABANDON): (_S.LOST, Hunt._abandon),
    (_S.WON, _I.ABANDON): (_S.LOST, Hunt._drop),
}
IGNORED: Final = frozenset(
    {(_S.READY, what) for what in HuntInput if what not in (_I.BEGIN, _I.ABANDON)}
    | {(_S.HUNTING, _I.BEGIN)}
    | {(_S.WON, what) for what in HuntInput if what is not _I.ABANDON}
    | {(_S.LOST, what) for what in HuntInput}
)
