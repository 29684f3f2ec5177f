"""
Gateway health: a state machine per gateway, driven by call outcomes and OPTIONS probes.

A gateway that fails is down: it gets a cooldown, longer each time, and is probed before it gets calls again.
A gateway that sent Retry-After gets no calls for that time. A gateway that never answered an OPTIONS cannot
be judged by probes, so it gets a trial call after its cooldown.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, auto
from typing import Any, Final

from sip.machine import NOTHING, Machine, Rules, compile_rules
from sip.values import frozen

FIRST_COOLDOWN_S: Final = 30.0
MAX_COOLDOWN_S: Final = 300.0
"""Longest cooldown: no gateway is out of service longer without being probed again."""
PING_EVERY_S: Final = 30.0


class HealthState(IntEnum):
    """State of a gateway; all but the last two accept calls."""

    UNKNOWN = 0
    UP = 1
    TRIAL = 2
    """The cooldown is over and probes give no evidence; the next call decides."""
    RESTING = 3
    """The gateway sent Retry-After."""
    DOWN = 4
    """The gateway failed and has not answered since."""


class HealthInput(IntEnum):
    """Event that changes the state of a gateway."""

    ANSWERED = auto()
    """A probe got a response, or a call got one other than 503."""
    FAILED = auto()
    """A call got no response, or a 503."""
    ASKED = auto()
    """A call failed, and its response had Retry-After."""
    PROBE_LOST = auto()
    PROBE_MUTE = auto()
    """No answer to a probe from a gateway that never answered one: no evidence."""
    COOLDOWN_OVER = auto()


@frozen
class HealthChange:
    """State change of a gateway."""

    gateway_sid: str
    before: HealthState
    after: HealthState


@dataclass(slots=True)
class Health(Machine[HealthState]):
    """Health of one gateway."""

    state: HealthState = HealthState.UNKNOWN
    last_ok_at: datetime | None = None
    """Time of the last answer."""
    rtt_ms: float | None = None
    """Round-trip time of the last answered OPTIONS."""
    until: float = 0.0
    """End of the cooldown, on the monotonic clock."""
    cooldown_s: float = 0.0
    """Length of the last cooldown after a failure; 0.0 after an answer."""
    probed_at: float = float("-inf")
    answers_options: bool = False

    @property
    def usable(self) -> bool:
        """True if the gateway accepts calls."""
        return self.state < HealthState.RESTING

    def take(self, what: HealthInput, now: float, cooldown_s: float = 0.0) -> None:
        """Apply an event; ``cooldown_s`` is the Retry-After time."""
        self.trigger(what, (now, cooldown_s))

    def _answered(self, _: tuple[float, float]) -> Sequence[Any]:
        self.cooldown_s = self.until = 0.0
        return NOTHING

    def _failed(self, about: tuple[float, float]) -> Sequence[Any]:
        now, _ = about
        if now >= self.until:
            # Calls that fail together are one failure: only a failure after the cooldown lengthens it.
            self.cooldown_s = (
                min(2 * self.cooldown_s, MAX_COOLDOWN_S) if self.cooldown_s else FIRST_COOLDOWN_S
            )
            self.until = now + self.cooldown_s
        return NOTHING

    def _asked(self, about: tuple[float, float]) -> Sequence[Any]:
        now, cooldown_s = about
        self.until = max(self.until, now + min(max(cooldown_s, 0.0), MAX_COOLDOWN_S))
        return NOTHING

    def _nothing(self, _: tuple[float, float]) -> Sequence[Any]:
        return NOTHING


class GatewayTable:
    """Health of all gateways; ``now`` is monotonic. State changes are kept until ``changes`` returns them."""

    def __init__(self, ping_every_s: float = PING_EVERY_S) -> None:
        self.ping_every_s = ping_every_s
        self.unusable: dict[str, HealthState] = {}
        """State of each gateway that accepts no calls now."""
        self._known: dict[str, Health] = {}
        self._changes: list[HealthChange] = []

    def of(self, gateway_sid: str) -> Health:
        """Health of a gateway."""
        return self._known.get(gateway_sid) or Health()

    def usable(self, gateway_sid: str) -> bool:
        """Return True if the gateway accepts calls."""
        return gateway_sid not in self.unusable

    def answered(self, gateway_sid: str, at: datetime, now: float) -> None:
        """Record that a call got a response from the gateway."""
        health = self._known.get(gateway_sid)
        if (
            health is None or health.state is not HealthState.UP
        ):  # An answer changes nothing of one that is up.
            health = self._take(gateway_sid, HealthInput.ANSWERED, now)
        health.last_ok_at = at

    def failed(self, gateway_sid: str, now: float, retry_after_s: float | None = None) -> None:
        """Record that the gateway did not serve a call: no response, or a 503, with its Retry-After."""
        what = HealthInput.FAILED if retry_after_s is None else HealthInput.ASKED
        self._take(gateway_sid, what, now, retry_after_s or 0.0)

    def probed(self, gateway_sid: str, at: datetime, now: float, rtt_ms: float) -> None:
        """Record that the gateway answered an OPTIONS."""
        health = self._take(gateway_sid, HealthInput.ANSWERED, now)
        health.last_ok_at, health.rtt_ms, health.answers_options = at, rtt_ms, True

    def probe_lost(self, gateway_sid: str, now: float, *, pinged: bool) -> None:
        """Record an unanswered OPTIONS; a ``pinged`` gateway is expected to answer."""
        known = pinged or self.of(gateway_sid).answers_options
        self._take(gateway_sid, HealthInput.PROBE_LOST if known else HealthInput.PROBE_MUTE, now)

    def due(
        self, gateway_sids: Iterable[str], pinged: Collection[str], now: float, limit: int = 64
    ) -> list[str]:
        """
        Return the gateways to probe now and count them as probed; drop gateways that are not named.

        ``pinged`` gateways are probed at intervals, gateways that are down also when their cooldown is over.
        """
        found: list[str] = []
        kept = {sid: self._known.get(sid) or Health() for sid in gateway_sids}
        self._known = kept
        self.unusable = {sid: state for sid, state in self.unusable.items() if sid in kept}
        for sid, health in kept.items():
            if health.state in (HealthState.RESTING, HealthState.DOWN) and now >= health.until:
                self._take(sid, HealthInput.COOLDOWN_OVER, now)
                due = health.probed_at < health.until
            else:
                due = health.state is not HealthState.RESTING and sid in pinged
                due = due and now - health.probed_at >= self.ping_every_s
            if due and len(found) < limit:
                health.probed_at = now
                found.append(sid)
        return found

    def forget(self, gateway_sid: str) -> None:
        """Drop the health of a gateway whose address has changed."""
        self._known.pop(gateway_sid, None)
        self.unusable.pop(gateway_sid, None)

    def changes(self) -> list[HealthChange]:
        """Return the state changes since the last call."""
        changes, self._changes = self._changes, []
        return changes

    def counts(self) -> dict[HealthState, int]:
        """Count the gateways in each state."""
        counted = Counter(health.state for health in self._known.values())
        return {state: counted[state] for state in HealthState}

    def _take(self, gateway_sid: str, what: HealthInput, now: float, cooldown_s: float = 0.0) -> Health:
        health = self._known.get(gateway_sid)
        if health is None:
            health = self._known[gateway_sid] = Health()
        before = health.state
        health.take(what, now, cooldown_s)
        if health.state is not before:
            self._changes.append(HealthChange(gateway_sid, before, health.state))
            if health.usable:
                self.unusable.pop(gateway_sid, None)
            else:
                self.unusable[gateway_sid] = health.state
        return health


_S, _I = HealthState, HealthInput
RULES: Final[Rules[HealthState, HealthInput]] = {
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
    (_S.RESTING, _I.COOLDOWN_OVER): (_S.DOWN, Health._nothing),
    (_S.DOWN, _I.ANSWERED): (_S.UP, Health._answered),
    (_S.DOWN, _I.FAILED): (_S.DOWN, Health._failed),
    (_S.DOWN, _I.ASKED): (_S.RESTING, Health._asked),
    (_S.DOWN, _I.PROBE_LOST): (_S.DOWN, Health._failed),
    (_S.DOWN, _I.PROBE_MUTE): (_S.TRIAL, Health._nothing),
    (_S.DOWN, _I.COOLDOWN_OVER): (_S.DOWN, Health._nothing),
}
IGNORED: Final = frozenset(
    # Only a gateway in cooldown has a cooldown that ends.
    {(state, _I.COOLDOWN_OVER) for state in (_S.UNKNOWN, _S.UP, _S.TRIAL)}
    | {(state, _I.PROBE_MUTE) for state in (_S.UNKNOWN, _S.UP, _S.TRIAL)}
    # Retry-After holds until it ends; calls and probes in progress do not change that.
    | {(_S.RESTING, what) for what in (_I.ANSWERED, _I.FAILED, _I.PROBE_LOST, _I.PROBE_MUTE)}
)

Health.ROWS = compile_rules(RULES)
