"""
Charges of a call: every answered leg is charged by started pulses, out of a reserve.

The reserve is extended in time, and the call is cut before it is unpaid.
"""

from dataclasses import dataclass
from typing import Final

from callcontrol.calls.effects.records import Arm, Disarm, ExtendReserve
from callcontrol.calls.events.answers import Timer
from callcontrol.ids import LegId
from sip.values import constructed_natively, frozen

EXTEND_LEAD_S: Final = 5.0
"""Time before the end of a reserve at which it is extended, in seconds."""

CUT_LEAD_S: Final = 0.5
"""Time before an unpaid pulse at which a call is cut, in seconds."""


@frozen
class Rates:
    """
    Prices per started pulse, in paise.

    An inbound leg costs ``inbound_paise``, an outbound leg ``outbound_paise``. A call reserves
    ``reserve_pulses`` pulses before it dials, and as many again at each extension.
    """

    outbound_paise: int = 60
    inbound_paise: int = 40
    pulse_s: float = 60.0
    reserve_pulses: int = 5


@constructed_natively
@dataclass(slots=True)
class _Metered:
    rate_paise: int
    since: float
    until: float | None = None


class Meter:
    """Computes the charges for the legs of one call; times are monotonic seconds."""

    def __init__(self, pulse_s: float = 60.0) -> None:
        self._pulse_s = pulse_s
        self._legs: dict[LegId, _Metered] = {}

    def start(self, leg: LegId, rate_paise: int, now: float) -> None:
        """Start to charge a leg, which was answered."""
        self._legs[leg] = _Metered(rate_paise, now)

    def stop(self, leg: LegId, now: float) -> None:
        """Stop charging a leg; ignored for unknown and stopped legs. The timer may then fire early."""
        metered = self._legs.get(leg)
        if metered is not None and metered.until is None:
            metered.until = now

    def clear(self) -> None:
        """Drop every leg: none was answered after all."""
        self._legs.clear()

    def runs(self, leg: LegId) -> bool:
        """Return True while the leg is charged."""
        metered = self._legs.get(leg)
        return metered is not None and metered.until is None

    def pulses(self, leg: LegId, now: float, since: float | None = None) -> int:
        """Pulses that the leg has started, in total or since ``since``; 0 if it was never answered."""
        metered = self._legs.get(leg)
        if metered is not None and since is not None:
            metered = _Metered(metered.rate_paise, max(since, metered.since), metered.until)
        return self._pulses_of(metered, now) if metered is not None else 0

    def charge_paise(self, now: float) -> int:
        """Charge of the call if it ended now, in paise."""
        total_paise = 0
        for leg in self._legs.values():
            total_paise += leg.rate_paise * self._pulses_of(leg, now)
        return total_paise

    def rate_paise(self) -> int:
        """Price of one more pulse of every active leg, in paise."""
        return sum(leg.rate_paise for leg in self._legs.values() if leg.until is None)

    def exhausted_at(self, reserved_paise: int, now: float) -> float | None:
        """
        Time when the next started pulse exceeds the reserve; None if no leg is charged.

        Returns ``now`` if the reserve is exceeded already.
        """
        total_paise = round_paise = 0
        due: list[tuple[float, int]] = []
        for leg in self._legs.values():
            pulses = self._pulses_of(leg, now)
            total_paise += leg.rate_paise * pulses
            if leg.until is None and leg.rate_paise > 0:
                round_paise += leg.rate_paise
                due.append((leg.since + pulses * self._pulse_s, leg.rate_paise))
        if not due:
            return None
        # Each leg starts one pulse per pulse time, so whole rounds are skipped at once.
        rounds = max(0, reserved_paise - total_paise) // round_paise
        total_paise += rounds * round_paise
        exhausted_at = now
        for at, rate_paise in sorted(due):
            if total_paise > reserved_paise:
                break
            total_paise += rate_paise
            exhausted_at = at + rounds * self._pulse_s
        return exhausted_at

    def _pulses_of(self, leg: _Metered, now: float) -> int:
        elapsed_s = (now if leg.until is None else leg.until) - leg.since
        return -int(-elapsed_s // self._pulse_s) if elapsed_s > 0.0 else 1


class CallCharges:
    """
    Charges of the legs of one call, compared with its reserve.

    The returned ``Arm`` or ``Disarm`` keeps ``Timer.MONEY`` up to date.

    Attributes:
        grown: True when more legs are charged than the timer knows of.
    """

    def __init__(self, rates: Rates, reserved_paise: int) -> None:
        self.meter = Meter(rates.pulse_s)
        self.grown = False
        self._rates = rates
        self._reserved_paise = reserved_paise
        self._refused = False
        self._lead_s = EXTEND_LEAD_S
        self._replaced_a_legs: list[LegId] = []
        self._a_leg_since: float | None = None

    def start(self, leg: LegId, now: float, *, inbound: bool) -> None:
        """Start charging a leg, which was answered; the timer is due for a change."""
        self.meter.start(leg, self._rates.inbound_paise if inbound else self._rates.outbound_paise, now)
        self.grown = True

    def due(self, now: float) -> ExtendReserve | Arm | Disarm | None:
        """Handle the timer: extend the reserve, or wait on. None when the call must be cut."""
        at = self.meter.exhausted_at(self._reserved_paise, now)
        if at is None or at - self._lead_s > now:
            return self.timer(now)
        if self._refused:
            return None
        more_paise = self._rates.reserve_pulses * self.meter.rate_paise()
        return ExtendReserve(max(self._reserved_paise, self.meter.charge_paise(now)) + more_paise)

    def extended(self, total_paise: int, now: float) -> Arm | Disarm:
        """Handle an extension: the wallet now holds this total."""
        self._reserved_paise = max(self._reserved_paise, total_paise)
        return self.timer(now)

    def refused(self, now: float) -> Arm | Disarm:
        """Handle a refused extension: the call is cut when the reserve is used up."""
        self._refused, self._lead_s = True, CUT_LEAD_S
        return self.timer(now)

    @property
    def a_leg_replaced(self) -> bool:
        """True after another leg became the first one."""
        return bool(self._replaced_a_legs)

    def replace_a_leg(self, old: LegId, since: float | None) -> None:
        """Bill the former first leg, too; its successor from ``since`` on, or from its own answer."""
        self._replaced_a_legs.append(old)
        self._a_leg_since = since

    def billed_s(self, a_leg: LegId, now: float) -> int:
        """Return the billed time of the first legs, in seconds."""
        pulses = self.meter.pulses(a_leg, now, self._a_leg_since)
        for leg in self._replaced_a_legs:
            pulses += self.meter.pulses(leg, now)
        return round(pulses * self._rates.pulse_s)

    def timer(self, now: float) -> Arm | Disarm:
        """Return the timer for the legs that are charged now."""
        self.grown = False
        at = self.meter.exhausted_at(self._reserved_paise, now)
        if at is None:
            return Disarm(Timer.MONEY)
        return Arm(Timer.MONEY, max(0.0, at - self._lead_s - now))
