"""
Dials the second party of a masked call: a bridge with time limit, count and recording from its answer.

A connected first party hears the ringing tone as soon as the second is dialled: a party that has just picked
up and hears nothing hangs up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import PlayRingback, PlaySounds
from callcontrol.calls.effects.records import Arm, Disarm, Save
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import Timer, TimerFired
from callcontrol.calls.events.legs import LegProgress
from callcontrol.calls.plan import Plan, Step
from callcontrol.calls.steps.base import CallParts
from callcontrol.calls.steps.bridge import BridgeState, BridgeStep
from callcontrol.masking.calls import BRIDGED_EVENT, RINGING_EVENT
from callcontrol.masking.progress import MaskedProgress
from callcontrol.models.parties import Party, PhoneTarget
from media.audio import Clip, Sound, tone

RING_TIMEOUT_S: Final = 60.0
"""Time that a party of a masked call may ring."""

WARNING_LEAD_S: Final = 10.0
"""Time from the warning to the limit; half the limit if that is shorter than twice this."""

_WARNING_HZ: Final = 1400.0
_WARNING_MS: Final = 400


@dataclass(frozen=True, slots=True)
class Connect(Step):
    """
    Dial the second party of a masked call and connect the two until one hangs up.

    ``max_duration_s`` counts from that party's answer; None is no limit. ``record`` records both parties from
    then on.
    """

    dials: ClassVar[bool] = True
    party: Party
    max_duration_s: float | None = None
    record: bool = False


def connect_to(number: str, masked_number: str, *, max_duration_s: int | None, record: bool) -> Connect:
    """Return the step that dials a number in E.164 as the masked number."""
    limit_s = None if max_duration_s is None else float(max_duration_s)
    return Connect(masked_party(number, masked_number), limit_s, record)


def masked_plan(
    party_a: str, party_b: str, masked_number: str, *, max_duration_s: int | None, record: bool
) -> Plan:
    """Return the plan of a masked call of two numbers in E.164: each is called as the masked number."""
    connect = connect_to(party_b, masked_number, max_duration_s=max_duration_s, record=record)
    return Plan((connect,), dial=masked_party(party_a, masked_number))


def masked_party(number: str, masked_number: str) -> Party:
    """Return a party with a number in E.164, which is called as the masked number."""
    return Party(PhoneTarget(number), masked_number, ring_timeout_s=RING_TIMEOUT_S)


class MaskedDialStep(BridgeStep):
    """The step that dials the second party of a masked call and joins it with the first."""

    def __init__(self, call: CallParts, connect: Connect) -> None:
        super().__init__(call, connect.party)
        self._limit_s = connect.max_duration_s
        self._record = connect.record
        self._masked = call.progress if isinstance(call.progress, MaskedProgress) else None

    def begin(self) -> Iterator[Effect]:
        """Start dialling the second party."""
        if self._masked is not None:
            self._masked.second_dialled()
        if self.call.a_leg.up:
            self._ringback = True
            yield PlayRingback(self.call.a_leg.id)
        yield from super().begin()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        if isinstance(event, TimerFired) and event.timer is Timer.WARNING:
            yield from self._play_warning()
            return
        before = self.state
        yield from super().handle(event)
        if before is not BridgeState.JOINED and self.joined:
            yield from self._bridged()
        elif self.over and before is not BridgeState.JOINED:
            self._second_failed()
        elif isinstance(event, LegProgress) and event.leg == self.b_leg and not self.joined:
            yield from self._second_rings()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Drop the second party."""
        yield Disarm(Timer.WARNING)
        yield from super().stop(ending)

    def _second_rings(self) -> Iterator[Effect]:
        if self._masked is not None and self._masked.second_rings():
            yield Save(RINGING_EVENT)

    def _second_failed(self) -> None:
        if self._masked is not None and self.ending is not None:
            self._masked.second_lost(self.ending)

    def _bridged(self) -> Iterator[Effect]:
        """Start the time limit, the recording and the count."""
        # A limit that the account set while the second party was dialled applies as well: the shorter one.
        limits = [limit_s for limit_s in (self._limit_s, self.call.ordered_time_s) if limit_s is not None]
        if not limits:
            yield Disarm(Timer.TIME_LIMIT)
        else:
            limit_s = min(limits)
            yield Arm(Timer.TIME_LIMIT, limit_s)
            yield Arm(Timer.WARNING, max(limit_s - WARNING_LEAD_S, limit_s / 2))
        if self._record:
            yield from self.call.recording.start(self.call.a_leg.id, 2)
        if self._masked is not None:
            self._masked.bridged(self.call.wall_time, self.call.now_s)
        yield Save(BRIDGED_EVENT)

    def _play_warning(self) -> Iterator[Effect]:
        """Play a short warning tone to both parties, which replaces their audio meanwhile."""
        b_leg = self.b_leg
        if not self.joined or b_leg is None:
            return
        for leg in (self.call.a_leg.id, b_leg):
            yield PlaySounds(leg, _warning_tone())


@lru_cache(maxsize=1)
def _warning_tone() -> tuple[Sound, ...]:
    return (Clip(tone(_WARNING_HZ, _WARNING_MS, -13.0)),)
