"""
A second party: dialled through its gateways and connected with the first, as a table of states.

While the second party rings, a waiting caller gets 180, or 183 with its early media, and an answered caller
hears a ringing tone or that early media. The second party's answer answers the caller. A dial verb adds a
time limit, and a server that gets the result.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum, auto
from typing import Final

from callcontrol.calls.dialer import Ending, FailoverState, GatewayFailover, unroutable
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import LinkMedia, PlayRingback, RelayDigit, SendDigits, StopAudio
from callcontrol.calls.effects.records import Arm, Disarm, FindRoute, Save
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import RouteFound, RouteRefused, Timer, TimerFired
from callcontrol.calls.events.legs import LegEnded, LegProgress
from callcontrol.calls.events.media import DigitReceived
from callcontrol.calls.hangup_cause import ALLOTTED_TIMEOUT
from callcontrol.calls.leg import Leg
from callcontrol.calls.plan import Dial
from callcontrol.calls.steps.base import CallParts, TableStep
from callcontrol.ids import LegId
from callcontrol.models import CallStatus, HangupSource
from callcontrol.models.parties import Party
from sip.machine import Rules, compile_rules

_RINGING_STATUSES: Final = frozenset({180, 181, 182, 183})


class BridgeState(IntEnum):
    """States of a bridge, in order."""

    NEW = 0
    ROUTING = 1
    DIALING = 2
    JOINED = 3
    OVER = 4


class BridgeInput(IntEnum):
    """Inputs of a bridge."""

    BEGIN = auto()
    ROUTED = auto()
    UNROUTABLE = auto()
    PROGRESS = auto()
    ANSWERED = auto()
    LOST = auto()
    """The second party cannot be reached."""
    GONE = auto()
    """The second party hung up."""
    STOP = auto()
    """Command: the call ends."""


class BridgeStep(TableStep[BridgeState]):
    """The step that dials a second party and connects it with the first."""

    needs_answer = False

    def __init__(
        self, call: CallParts, party: Party, *, quiet: bool = False, announce: Save | None = None
    ) -> None:
        """
        ``quiet`` leaves the first party's audio unchanged while the second rings: it hears its agent.

        ``announce`` is saved when the two are connected.
        """
        super().__init__(call, BridgeState.NEW)
        self._failover = GatewayFailover(party, call)
        self._quiet = quiet
        self._announce = announce
        self._ringback = False
        self._early: LegId | None = None
        """The leg whose early media is heard; our ringing tone would cover it."""
        self._party = party

    @property
    def party(self) -> Party:
        """The party that is dialled."""
        return self._party

    @property
    def joined(self) -> bool:
        """True while the two parties are connected."""
        return self.state is _JOINED

    @property
    def b_leg(self) -> LegId | None:
        """The leg of the second party, or the one being tried."""
        return self._failover.leg.id if self._failover.leg is not None else None

    def change_second(self, leg: Leg) -> None:
        """Replace the leg of the second party by an answered one."""
        self._failover.leg = leg

    def begin(self) -> Iterable[Effect]:
        """Request a route to the second party."""
        return self.trigger(BridgeInput.BEGIN)

    def handle(self, event: Event) -> Iterable[Effect]:
        """Handle one event of the call."""
        match event:
            case RouteFound():
                return self.trigger(BridgeInput.ROUTED, event)
            case RouteRefused():
                return self.trigger(BridgeInput.UNROUTABLE, event)
            case LegEnded() if self._failover.owns(event.leg):
                return self.trigger(BridgeInput.GONE, event)
            case DigitReceived():
                return self._pass_digit(event)
        return self._handle_dialing(event) if self.state is _DIALING else ()

    def stop(self, ending: Ending) -> Iterable[Effect]:
        """Abandon the second party."""
        return self._failover.abandon(ending.cause) + self.trigger(BridgeInput.STOP)

    def _handle_dialing(self, event: Event) -> list[Effect]:
        failover = self._failover
        effects = failover.handle(event)
        if failover.state is FailoverState.ANSWERED:
            effects += self.trigger(BridgeInput.ANSWERED)
        elif failover.state is FailoverState.FAILED:
            effects += self.trigger(BridgeInput.LOST)
        elif isinstance(event, LegProgress) and failover.owns(event.leg):
            effects += self.trigger(BridgeInput.PROGRESS, event)
        return effects

    def _find(self, _: Event | None) -> Sequence[Effect]:
        return (FindRoute(self._party),)

    def _dial(self, event: Event | None) -> Sequence[Effect]:
        assert isinstance(event, RouteFound)
        return self._failover.begin(event.attempts)

    def _no_way(self, event: Event | None) -> Sequence[Effect]:
        assert isinstance(event, RouteRefused)
        self.ending = unroutable(event)
        return ()

    def _progress(self, event: Event | None) -> Iterable[Effect]:
        assert isinstance(event, LegProgress)
        if self._quiet:
            return ()
        early = bool(event.body)
        if early:
            self._early = event.leg
        first = self.call.a_leg
        effects = [*self._silence(), LinkMedia(first.id, event.leg)] if early else []
        if not first.up:
            status = event.status if event.status in _RINGING_STATUSES else 183
            effects += self.call.ring(status, early_media=early)
        elif self._early != event.leg and not self._ringback:
            self._ringback = True
            effects.append(PlayRingback(first.id))
        return effects

    def _join(self, _: Event | None) -> Sequence[Effect]:
        b_leg = self.b_leg
        assert b_leg is not None
        effects = [*self._silence(), *self.call.answer(), LinkMedia(self.call.a_leg.id, b_leg)]
        if self._announce is not None:
            effects.append(self._announce)
        return effects

    def _lost(self, _: Event | None) -> Sequence[Effect]:
        self.ending = self._failover.ending
        return self._silence()

    def _gone(self, event: Event | None) -> Sequence[Effect]:
        assert isinstance(event, LegEnded)
        source: HangupSource = "callee" if event.clean else "carrier"
        self.ending = Ending(CallStatus.COMPLETED, event.hangup_cause, source)
        return ()

    def _stopped(self, _: Event | None) -> Sequence[Effect]:
        return ()

    def _silence(self) -> Sequence[Effect]:
        """Stop the ringing tone, if the first party hears it."""
        if not self._ringback:
            return ()
        self._ringback = False
        return (StopAudio(self.call.a_leg.id),)

    def _pass_digit(self, event: DigitReceived) -> Iterator[Effect]:
        """Relay a digit: in RTP the relay forwards it where it can; one in signalling is sent by us."""
        a_leg, b_leg = self.call.a_leg.id, self.b_leg
        if not self.joined or b_leg is None or event.leg not in (a_leg, b_leg):
            return
        other = b_leg if event.leg == a_leg else a_leg
        if event.in_band:
            yield RelayDigit(other, event.digit, event.duration_ms)
        else:
            yield SendDigits(other, event.digit, event.duration_ms)


_S, _I = BridgeState, BridgeInput
_DIALING, _JOINED = BridgeState.DIALING, BridgeState.JOINED
RULES: Final[Rules[BridgeState, BridgeInput]] = {
    (_S.NEW, _I.BEGIN): (_S.ROUTING, BridgeStep._find),
    (_S.NEW, _I.STOP): (_S.OVER, BridgeStep._stopped),
    (_S.ROUTING, _I.ROUTED): (_S.DIALING, BridgeStep._dial),
    (_S.ROUTING, _I.UNROUTABLE): (_S.OVER, BridgeStep._no_way),
    (_S.ROUTING, _I.STOP): (_S.OVER, BridgeStep._stopped),
    (_S.DIALING, _I.PROGRESS): (_S.DIALING, BridgeStep._progress),
    (_S.DIALING, _I.ANSWERED): (_S.JOINED, BridgeStep._join),
    (_S.DIALING, _I.LOST): (_S.OVER, BridgeStep._lost),
    (_S.DIALING, _I.STOP): (_S.OVER, BridgeStep._stopped),
    (_S.JOINED, _I.GONE): (_S.OVER, BridgeStep._gone),
    (_S.JOINED, _I.STOP): (_S.OVER, BridgeStep._stopped),
}
IGNORED: Final = frozenset(
    {(_S.NEW, what) for what in BridgeInput if what not in (_I.BEGIN, _I.STOP)}
    | {(_S.ROUTING, _I.BEGIN), (_S.ROUTING, _I.PROGRESS), (_S.ROUTING, _I.ANSWERED)}
    | {(_S.ROUTING, _I.LOST), (_S.ROUTING, _I.GONE)}
    | {(_S.DIALING, _I.BEGIN), (_S.DIALING, _I.ROUTED), (_S.DIALING, _I.UNROUTABLE), (_S.DIALING, _I.GONE)}
    | {(_S.JOINED, what) for what in BridgeInput if what not in (_I.GONE, _I.STOP)}
    | {(_S.OVER, what) for what in BridgeInput}
)

BridgeStep.ROWS = compile_rules(RULES)


class DialStep(BridgeStep):
    """The step that dials a second party, and then asks the ``action`` URL, if there is one."""

    def __init__(self, call: CallParts, dial: Dial) -> None:
        super().__init__(call, dial.party)
        self._action = dial.action
        self._limit_s = dial.time_limit_s
        self._joined_at: float | None = None

    def handle(self, event: Event) -> Iterable[Effect]:
        """Handle one event of the call."""
        if isinstance(event, TimerFired) and event.timer is Timer.TALK:
            effects = [*self._time_up()]
        else:
            effects = [*super().handle(event)]
        if self._joined_at is None and self.state is _JOINED:
            self._joined_at = self.call.now_s
            if self._limit_s is not None:
                effects.append(Arm(Timer.TALK, self._limit_s))
        if self.over:
            effects += self._disarm()
            self._ask_next()
        return effects

    def stop(self, ending: Ending) -> Iterable[Effect]:
        """Abandon the second party."""
        return [*self._disarm(), *super().stop(ending)]

    def _time_up(self) -> Iterable[Effect]:
        """Disconnect the second party at the time limit; the first party continues with the plan."""
        if not self.joined or self._limit_s is None:
            return ()
        ending = Ending(CallStatus.COMPLETED, ALLOTTED_TIMEOUT, "system")
        effects = super().stop(ending)
        self.ending = ending
        return effects

    def _ask_next(self) -> None:
        """Make the request to the ``action`` URL the next step, with the result."""
        if self._action is None or self.ending is None:
            return
        talked_s = 0 if self._joined_at is None else round(self.call.now_s - self._joined_at)
        # After the connection the ending describes the call, not the dialled party.
        status = self.ending.status if self._joined_at is None else CallStatus.COMPLETED
        sip_status = self.ending.sip_status if self._joined_at is None else 200
        facts = (
            ("dial_call_status", status.value),
            ("dial_call_duration", talked_s),
            ("dial_sip_status", sip_status),
        )
        self.call.set_next_steps((replace(self._action, facts=(*self._action.facts, *facts)),))

    def _disarm(self) -> Sequence[Effect]:
        return () if self._limit_s is None or self._joined_at is None else (Disarm(Timer.TALK),)
