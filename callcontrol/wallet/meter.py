"""Metering of a call: every answered leg is charged by started pulses."""

from dataclasses import dataclass

from callcontrol.ids import LegId


@dataclass(frozen=True, slots=True)
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
