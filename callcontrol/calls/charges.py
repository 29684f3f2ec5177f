"""
Charges of a call: every answered leg is charged by started pulses, out of a reserve.

The reserve is extended in time, and the call is cut before it is unpaid.
"""

from dataclasses import dataclass
from typing import Final

from callcontrol.calls.effects.records import Arm, Disarm, ExtendReserve
from callcontrol.calls.events.answers import Timer
from callcontrol.ids import LegId
from sip.values import frozen

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
        """Stop charging a leg; ignored for unknown and stopped legs."""
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
        return sum(leg.rate_paise * self._pulses_of(leg, now) for leg in self._legs.values())

    def rate_paise(self) -> int:
        """Price of one more pulse of every active leg, in paise."""
        return sum(leg.rate_paise for leg in self._legs.values() if leg.until is None)

    def exhausted_at(self, reserved_paise: int, now: float) -> float | None:
        """
        Time when the next started pulse exceeds the reserve; None if no leg is charged.

        Returns ``now`` if the reserve is exceeded already.
        """
        running = [leg for leg in self._legs.values() if leg.until is None and leg.rate_paise > 0]
        if not running:
            return None
        total_paise = self.charge_paise(now)
        ticks = [leg.since + self._pulses_of(leg, now) * self._pulse_s for leg in running]
        # Each leg starts one pulse per pulse time, so whole rounds are skipped at once.
        rounds = max(0, reserved_paise - total_paise) // sum([leg.rate_paise for leg in running])
        total_paise += rounds * sum([leg.rate_paise for leg in running])
        due = sorted(
            [(at + rounds * self._pulse_s, leg.rate_paise) for at, leg in zip(ticks, running, strict=True)]
        )
        at = now
        while total_paise <= reserved_paise:
            at, rate_paise = due.pop(0)
            total_paise += rate_paise
        return at

    def _pulses_of(self, leg: _Metered, now: float) -> int:
        elapsed_s = max(0.0, (leg.until if leg.until is not None else now) - leg.since)
        return max(1, -int(-elapsed_s // self._pulse_s))


class CallCharges:
    """
    Charges of the legs of one call, compared with its reserve.

    The returned ``Arm`` or ``Disarm`` keeps ``Timer.MONEY`` up to date.
    """

    def __init__(self, rates: Rates, reserved_paise: int) -> None:
        self.meter = Meter(rates.pulse_s)
        self._rates = rates
        self._reserved_paise = reserved_paise
        self._refused = False
        self._replaced_a_legs: list[LegId] = []
        self._a_leg_since: float | None = None

    def start(self, leg: LegId, now: float, *, inbound: bool) -> Arm | Disarm:
        """Start charging a leg, which was answered."""
        self.meter.start(leg, self._rates.inbound_paise if inbound else self._rates.outbound_paise, now)
        return self._timer(now)

    def stop(self, leg: LegId, now: float) -> None:
        """Stop charging a leg; the timer may then fire early, which is harmless."""
        self.meter.stop(leg, now)

    def due(self, now: float) -> ExtendReserve | Arm | Disarm | None:
        """Handle the timer: extend the reserve, or wait on. None when the call must be cut."""
        at = self.meter.exhausted_at(self._reserved_paise, now)
        if at is None or at - self._lead_s > now:
            return self._timer(now)
        if self._refused:
            return None
        more_paise = self._rates.reserve_pulses * self.meter.rate_paise()
        return ExtendReserve(max(self._reserved_paise, self.meter.charge_paise(now)) + more_paise)

    def extended(self, total_paise: int, now: float) -> Arm | Disarm:
        """Handle an extension: the wallet now holds this total."""
        self._reserved_paise = max(self._reserved_paise, total_paise)
        return self._timer(now)

    def refused(self, now: float) -> Arm | Disarm:
        """Handle a refused extension: the call is cut when the reserve is used up."""
        self._refused = True
        return self._timer(now)

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
        pulses = sum(self.meter.pulses(leg, now) for leg in self._replaced_a_legs)
        return round((pulses + self.meter.pulses(a_leg, now, self._a_leg_since)) * self._rates.pulse_s)

    @property
    def _lead_s(self) -> float:
        return CUT_LEAD_S if self._refused else EXTEND_LEAD_S

    def _timer(self, now: float) -> Arm | Disarm:
        at = self.meter.exhausted_at(self._reserved_paise, now)
        if at is None:
            return Disarm(Timer.MONEY)
        return Arm(Timer.MONEY, max(0.0, at - self._lead_s - now))
