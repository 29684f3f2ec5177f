"""
Which gateways may be given calls: what calls and OPTIONS probes say of each, as a table of states.

A gateway that fails is down: it rests, longer each time, and is probed before it is given calls again.
One that asks for a rest (Retry-After) is left alone for that long. One that never answered an OPTIONS
cannot be judged by it, and gets a call on trial after its rest.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, auto
from typing import Final

FIRST_REST_S: Final = 30.0
LONGEST_REST_S: Final = 300.0
"""No gateway is out of service for longer than this without being asked again."""
PING_EVERY_S: Final = 30.0


class HealthState(IntEnum):
    """What is thought of a gateway; all but the last two are given calls."""

    UNKNOWN = 0
    UP = 1
    TRIAL = 2
    """Its rest is over and no probe can tell: the next call will."""
    RESTING = 3
    """It asked for a rest."""
    DOWN = 4
    """It failed, and has not answered since."""


class HealthInput(IntEnum):
    """What is learnt of a gateway."""

    ANSWERED = auto()
    """A call or a probe got an answer, whatever it said."""
    FAILED = auto()
    """A call got none, or a 503."""
    ASKED = auto()
    """It answered with Retry-After."""
    PROBE_LOST = auto()
    PROBE_MUTE = auto()
    """No answer to a probe from one that never answered any: that says nothing."""
    REST_OVER = auto()


@dataclass(frozen=True, slots=True)
class HealthChange:
    """A gateway went from one state to another."""

    gateway_sid: str
    before: HealthState
    after: HealthState


@dataclass(slots=True)
class Health:
    """What is known of one gateway."""

    state: HealthState = HealthState.UNKNOWN
    last_ok_at: datetime | None = None
    """When it answered last."""
    rtt_ms: float | None = None
    """How long its last answer to an OPTIONS took."""
    until: float = 0.0
    """The end of its rest, on the clock of calls."""
    rest_s: float = 0.0
    """How long it rested last; 0.0 once it answers."""
    probed_at: float = float("-inf")
    answers_options: bool = False

    @property
    def usable(self) -> bool:
        """Whether it may be given calls."""
        return self.state < HealthState.RESTING

    def take(self, what: HealthInput, now: float, rest_s: float = 0.0) -> None:
        """Take in what was learnt; ``rest_s`` is the rest asked for."""
        rule = RULES.get((self.state, what))
        if rule is not None:  # others are listed in IGNORED
            self.state, action = rule
            action(self, now, rest_s)

    def _answered(self, now: float, _: float) -> None:
        self.rest_s = self.until = 0.0

    def _failed(self, now: float, _: float) -> None:
        if now >= self.until:
            # Calls that fail together are one failure: only what comes after the rest makes it longer.
            self.rest_s = min(2 * self.rest_s, LONGEST_REST_S) if self.rest_s else FIRST_REST_S
            self.until = now + self.rest_s

    def _asked(self, now: float, rest_s: float) -> None:
        self.until = max(self.until, now + min(max(rest_s, 0.0), LONGEST_REST_S))

    def _nothing(self, now: float, _: float) -> None:
        pass


class GatewayTable:
    """The health of all gateways; ``now`` is monotonic. What changed is kept until ``changes`` is asked."""

    def __init__(self, ping_every_s: float = PING_EVERY_S) -> None:
        self.ping_every_s = ping_every_s
        self._known: dict[str, Health] = {}
        self._changes: list[HealthChange] = []

    def of(self, gateway_sid: str) -> Health:
        """What is known of a gateway."""
        return self._known.get(gateway_sid) or Health()

    def usable(self, gateway_sid: str) -> bool:
        """Whether the gateway may be given a call."""
        health = self._known.get(gateway_sid)
        return health is None or health.usable

    def down(self, gateway_sid: str) -> bool:
        """Whether the gateway failed; one that asked for a rest did not."""
        return self.of(gateway_sid).state is HealthState.DOWN

    def answered(self, gateway_sid: str, at: datetime, now: float) -> None:
        """A call got an answer from the gateway."""
        self._take(gateway_sid, HealthInput.ANSWERED, now).last_ok_at = at

    def failed(self, gateway_sid: str, now: float, retry_after_s: float | None = None) -> None:
        """A call was not served by the gateway: no answer, or one that says so; with the rest it asks for."""
        what = HealthInput.FAILED if retry_after_s is None else HealthInput.ASKED
        self._take(gateway_sid, what, now, retry_after_s or 0.0)

    def probed(self, gateway_sid: str, at: datetime, now: float, rtt_ms: float) -> None:
        """The gateway answered an OPTIONS."""
        health = self._take(gateway_sid, HealthInput.ANSWERED, now)
        health.last_ok_at, health.rtt_ms, health.answers_options = at, rtt_ms, True

    def probe_lost(self, gateway_sid: str, now: float, *, pinged: bool) -> None:
        """No answer to an OPTIONS; a gateway that is ``pinged`` is expected to give one."""
        known = pinged or self.of(gateway_sid).answers_options
        self._take(gateway_sid, HealthInput.PROBE_LOST if known else HealthInput.PROBE_MUTE, now)

    def due(
        self, gateway_sids: Iterable[str], pinged: Collection[str], now: float, limit: int = 64
    ) -> list[str]:
        """
        The gateways to probe now, each counted as probed; gateways that are not named are forgotten.

        Those ``pinged`` are probed at intervals, those that are down when their rest is over.
        """
        found: list[str] = []
        kept = {sid: self._known.get(sid) or Health() for sid in gateway_sids}
        self._known = kept
        for sid, health in kept.items():
            if health.state in (HealthState.RESTING, HealthState.DOWN) and now >= health.until:
                self._take(sid, HealthInput.REST_OVER, now)
                due = health.probed_at < health.until
            else:
                due = health.state is not HealthState.RESTING and sid in pinged
                due = due and now - health.probed_at >= self.ping_every_s
            if due and len(found) < limit:
                health.probed_at = now
                found.append(sid)
        return found

    def forget(self, gateway_sid: str) -> None:
        """The gateway is somewhere else now: what was learnt says nothing of it."""
        self._known.pop(gateway_sid, None)

    def changes(self) -> list[HealthChange]:
        """What changed since this was asked last."""
        changes, self._changes = self._changes, []
        return changes

    def counts(self) -> dict[HealthState, int]:
        """How many gateways are in each state."""
        counted = Counter(health.state for health in self._known.values())
        return {state: counted[state] for state in HealthState}

    def _take(self, gateway_sid: str, what: HealthInput, now: float, rest_s: float = 0.0) -> Health:
        health = self._known.setdefault(gateway_sid, Health())
        before = health.state
        health.take(what, now, rest_s)
        if health.state is not before:
            self._changes.append(HealthChange(gateway_sid, before, health.state))
        return health


Action = Callable[[Health, float, float], None]

_S, _I = HealthState, HealthInput
RULES: Final[dict[tuple[HealthState, HealthInput], tuple[HealthState, Action]]] = {
    (_S.UNKNOWN, _I.ANSWERED): (_S.UP, Health._answered),
    (_S.UNKNOWN, _I.FAILED): (_S.DOWN, Health._failed),
    (_S.UNKNOWN, _I.ASKED): (_S.RESTING, Health._asked),
    (_S.UNKNOWN, _I.PROBE_LOST): (_S.DOWN, Health._failed),
    (_S.UP, _I.ANSWERED): (_S.UP, Health._answered),
    (_S.UP, _I.FAILED): (_S.DOWN, Health._failed),
    (_S.UP, _I.ASKED): (_S.RESTING, Health._asked),
    (_S.UP, _I.PROBE_LOST): (_S.DOWN, Health._failed),
    (_S.TRIAL, _I.ANSWERED): (_S.UP, Health._answered),
    (_S.TRIAL, _I.FAILED): (_S.DOWN, Health._failed),
    (_S.TRIAL, _I.ASKED): (_S.RESTING, Health._asked),
    (_S.TRIAL, _I.PROBE_LOST): (_S.DOWN, Health._failed),
    (_S.RESTING, _I.ASKED): (_S.RESTING, Health._asked),
    (_S.RESTING, _I.REST_OVER): (_S.DOWN, Health._nothing),
    (_S.DOWN, _I.ANSWERED): (_S.UP, Health._answered),
    (_S.DOWN, _I.FAILED): (_S.DOWN, Health._failed),
    (_S.DOWN, _I.ASKED): (_S.RESTING, Health._asked),
    (_S.DOWN, _I.PROBE_LOST): (_S.DOWN, Health._failed),
    (_S.DOWN, _I.PROBE_MUTE): (_S.TRIAL, Health._nothing),
    (_S.DOWN, _I.REST_OVER): (_S.DOWN, Health._nothing),
}
IGNORED: Final = frozenset(
    # Only a gateway that rests has a rest that ends.
    {(state, _I.REST_OVER) for state in (_S.UNKNOWN, _S.UP, _S.TRIAL)}
    | {(state, _I.PROBE_MUTE) for state in (_S.UNKNOWN, _S.UP, _S.TRIAL)}
    # It asked to be left alone; what calls and probes under way bring changes nothing about that.
    | {(_S.RESTING, what) for what in (_I.ANSWERED, _I.FAILED, _I.PROBE_LOST, _I.PROBE_MUTE)}
)
