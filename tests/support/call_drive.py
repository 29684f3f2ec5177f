"""Drives a call machine on virtual time, doing at once what the layers below would do later."""

from collections.abc import Sequence
from typing import Any, TypeVar

from callcontrol.bootstrap.products import STEPS
from callcontrol.calls.call import CallMachine
from callcontrol.calls.charges import Rates
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.agent import OpenAgent
from callcontrol.calls.effects.media import CloseMedia, ConnectMedia
from callcontrol.calls.effects.records import Arm, Disarm, FindRoute, Finish, Save
from callcontrol.calls.effects.signalling import DialLeg, TakeOffer
from callcontrol.calls.events import Event
from callcontrol.calls.events.agent import AgentOpened
from callcontrol.calls.events.answers import RouteFound, Timer, TimerFired
from callcontrol.calls.events.legs import LegAnswered, LegConfirmed, LegProgress, MediaConnected, OfferTaken
from callcontrol.calls.plan import Dial, Plan, Step, Stream
from callcontrol.clock import WallClock
from callcontrol.models.parties import Party, PhoneTarget, RouteAttempt
from media.streams import choose_stream
from tests.support.domain import (
    CALLEE,
    NOW,
    OWN_NUMBER,
    make_carrier,
    make_gateway,
    make_record,
)

EffectT = TypeVar("EffectT", bound=Effect)


def make_party(number: str = CALLEE, **changes: Any) -> Party:
    return Party(**{"target": PhoneTarget(number), "caller_id": OWN_NUMBER, **changes})


def make_attempt(number: int = 1) -> RouteAttempt:
    return RouteAttempt(make_carrier(), make_gateway(f"gateway-{number}"), CALLEE)


A, B, C = 0, 1, 2
AGENT = Stream(choose_stream("wss://agent.example/ws"))


class Drive:
    """
    One call on virtual time.

    Offers are taken, answers fit and routes are found unless ``obliging`` is False; then the test says what
    becomes of them.
    """

    def __init__(
        self,
        *steps: Step,
        inbound: bool = True,
        routes: int = 1,
        rates: Rates | None = None,
        obliging: bool = True,
        **plan: Any,
    ) -> None:
        self.now = 1000.0
        self.routes = routes
        self.obliging = obliging
        rates = rates or Rates()
        self.plan = Plan(steps, dial=None if inbound else make_party(), **plan)
        self.record = make_record("inbound" if inbound else "outbound")
        self.machine = CallMachine(
            self.record,
            self.plan,
            rates=rates,
            clock=WallClock(self.now, NOW),
            step_makers=STEPS,
            reserved_paise=self.plan.reserve_paise(rates),
        )
        self.timers: dict[Timer, float] = {}
        self.effects: list[Effect] = []
        self.all: list[Effect] = []

    def start(self) -> "Drive":
        """Begin."""
        if self.plan.dial is None:
            self._take(self.machine.start_inbound(self.now))
        else:
            self._take(self.machine.start_outbound(self.attempts(), self.now))
        return self

    def attempts(self) -> Sequence[RouteAttempt]:
        return [make_attempt(number + 1) for number in range(self.routes)]

    def feed(self, *events: Event) -> list[Effect]:
        """Process events now; returns the resulting effects."""
        self.effects = []
        for event in events:
            self._take(self.machine.handle(event, self.now))
        return self.effects

    def after(self, delay_s: float) -> list[Effect]:
        """Advance the clock, timers included; returns the effects meanwhile."""
        self.effects = []
        end = self.now + delay_s
        while self.timers:
            timer = min(self.timers, key=self.timers.__getitem__)
            if self.timers[timer] > end:
                break
            self.now = self.timers.pop(timer)
            self._take(self.machine.handle(TimerFired(timer), self.now))
        self.now = end
        return self.effects

    def answer_a(self) -> list[Effect]:
        """The caller acknowledges our answer."""
        return self.feed(LegConfirmed(0))

    def done(self, kind: type[EffectT]) -> list[EffectT]:
        """The effects of one kind so far."""
        return [effect for effect in self.all if isinstance(effect, kind)]

    def events(self) -> list[str]:
        """The events published so far."""
        return [effect.event for effect in self.done(Save) if effect.event is not None]

    def _take(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            self.effects.append(effect)
            self.all.append(effect)
            if isinstance(effect, Arm):
                self.timers[effect.timer] = self.now + effect.delay_s
            elif isinstance(effect, Disarm):
                self.timers.pop(effect.timer, None)
            elif isinstance(effect, Finish):
                self.timers.clear()
        if self.obliging:
            for effect in effects:
                self._oblige(effect)

    def _oblige(self, effect: Effect) -> None:
        outcome: Event | None = None
        if isinstance(effect, TakeOffer):
            outcome = OfferTaken(effect.leg)
        elif isinstance(effect, ConnectMedia) and not effect.early:
            outcome = MediaConnected(effect.leg)
        elif isinstance(effect, FindRoute):
            outcome = RouteFound(self.attempts())
        if outcome is not None:
            self._take(self.machine.handle(outcome, self.now))


def assert_nothing_left(drive: Drive) -> None:
    """The call is over: every leg, stream and timer of it too, and its money is settled once."""
    machine = drive.machine
    assert machine.finished
    assert all(leg.over for leg in machine.legs.values())
    opened = {effect.leg for effect in drive.all if isinstance(effect, TakeOffer | DialLeg)}
    closed = [effect.leg for effect in drive.done(CloseMedia)]
    assert opened <= set(closed)
    assert len(closed) == len(set(closed)), "a stream is closed once"
    assert len(drive.done(Finish)) == 1
    assert not drive.timers
    assert drive.record.status.ended
    assert drive.record.ended_at is not None
    if drive.done(OpenAgent):
        outcome = drive.record.stream
        assert outcome is not None and outcome.state in ("stopped", "failed")


DIAL = Dial(make_party())


def outcome(drive: Drive) -> tuple[str, str | None, str | None]:
    record = drive.record
    return record.status.value, record.hangup_cause, record.hangup_source


def forward(**changes: object) -> Drive:
    return Drive(DIAL, **changes).start()  # type: ignore[arg-type]


def bridged(**changes: object) -> Drive:
    drive = forward(**changes)
    drive.feed(LegProgress(B, 180), LegAnswered(B, b"sdp"))
    drive.answer_a()
    return drive


def streamed(**changes: object) -> Drive:
    drive = Drive(AGENT, **changes).start()  # type: ignore[arg-type]
    drive.feed(AgentOpened(), LegConfirmed(A))
    return drive


def lasting(max_retries: int = 3, **changes: Any) -> Drive:
    """A streamed call whose agent is sought again when its connection breaks."""
    choice = choose_stream("wss://agent.example/ws", {"stream_max_retries": max_retries})
    drive = Drive(Stream(choice), **changes).start()
    drive.feed(AgentOpened(), LegConfirmed(A))
    return drive


def placed(*steps: Step, **changes: object) -> Drive:
    drive = Drive(*steps, inbound=False, **changes).start()  # type: ignore[arg-type]
    drive.feed(LegProgress(A, 180), LegAnswered(A, b"sdp"))
    return drive
