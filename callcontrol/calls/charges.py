"""Charges and reserve of a running call: extends it in time, and cuts the call before it is unpaid."""

from typing import Final

from callcontrol.calls.effects.records import Arm, Disarm, ExtendReserve
from callcontrol.calls.events.answers import Timer
from callcontrol.calls.plan import Plan
from callcontrol.ids import LegId
from callcontrol.wallet.meter import Meter, Rates

EXTEND_LEAD_S: Final = 5.0
"""Time before the end of a reserve at which it is extended, in seconds."""

CUT_LEAD_S: Final = 0.5
"""Time before an unpaid pulse at which a call is cut, in seconds."""


def initial_reserve_paise(plan: Plan, rates: Rates) -> int:
    """Return the reserve needed to begin a call: ``reserve_pulses`` of every leg it may have."""
    if not plan.answers:
        return 0
    first_paise = rates.inbound_paise if plan.dial is None else rates.outbound_paise
    second_paise = rates.outbound_paise if plan.dials else 0
    return rates.reserve_pulses * (first_paise + second_paise)


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
