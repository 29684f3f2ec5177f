"""Money held for a call while it runs: asking for more in time, and cutting a call before it is unpaid."""

from typing import Final

from callcontrol.calls.effects import Arm, Disarm, ExtendReserve
from callcontrol.calls.events import Timer
from callcontrol.calls.plan import Plan
from callcontrol.ids import LegId
from callcontrol.wallet.meter import Meter, Rates

EXTEND_LEAD_S: Final = 5.0
"""How long before a reserve runs out the wallet is asked for more."""

CUT_LEAD_S: Final = 0.5
"""How long before an unpaid pulse would start a call is cut."""


def initial_reserve_paise(plan: Plan, rates: Rates) -> int:
    """What a call must have reserved before it begins: some pulses of every leg it may come to have."""
    if not plan.answers:
        return 0
    first_paise = rates.inbound_paise if plan.dial is None else rates.outbound_paise
    second_paise = rates.outbound_paise if plan.dials else 0
    return rates.reserve_pulses * (first_paise + second_paise)


class ReserveWatch:
    """
    The reserve of one call against what its legs cost.

    Each answer is the effect that keeps ``Timer.MONEY`` where it has to be.
    """

    def __init__(self, rates: Rates, reserved_paise: int) -> None:
        self.meter = Meter(rates.pulse_s)
        self._rates = rates
        self._reserved_paise = reserved_paise
        self._refused = False

    def start(self, leg: LegId, rate_paise: int, now: float) -> Arm | Disarm:
        """Charge a leg from now on: it was answered."""
        self.meter.start(leg, rate_paise, now)
        return self._timer(now)

    def stop(self, leg: LegId, now: float) -> None:
        """Charge a leg no further; the timer may then run out early, which does no harm."""
        self.meter.stop(leg, now)

    def due(self, now: float) -> ExtendReserve | Arm | Disarm | None:
        """The timer has run out: ask for more, or wait on. None when the call must be cut."""
        at = self.meter.exhausted_at(self._reserved_paise, now)
        if at is None or at - self._lead_s > now:
            return self._timer(now)
        if self._refused:
            return None
        more_paise = self._rates.reserve_pulses * self.meter.rate_paise()
        return ExtendReserve(max(self._reserved_paise, self.meter.charge_paise(now)) + more_paise)

    def extended(self, total_paise: int, now: float) -> Arm | Disarm:
        """The wallet holds this much now."""
        self._reserved_paise = max(self._reserved_paise, total_paise)
        return self._timer(now)

    def refused(self, now: float) -> Arm | Disarm:
        """The wallet has no more: what is held is used up, then the call is cut."""
        self._refused = True
        return self._timer(now)

    @property
    def _lead_s(self) -> float:
        return CUT_LEAD_S if self._refused else EXTEND_LEAD_S

    def _timer(self, now: float) -> Arm | Disarm:
        at = self.meter.exhausted_at(self._reserved_paise, now)
        if at is None:
            return Disarm(Timer.MONEY)
        return Arm(Timer.MONEY, max(0.0, at - self._lead_s - now))
