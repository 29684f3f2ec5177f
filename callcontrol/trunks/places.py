"""Places for legs at trunks with limits: legs at once and new legs per second, of a carrier or gateway."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from callcontrol.models import Carrier, Gateway
from callcontrol.models.parties import RouteAttempt

_SECOND_US: Final = 1_000_000
_FULL_US: Final = 5 * _SECOND_US
"""Retry delay when legs have to end first."""


@dataclass(frozen=True, slots=True)
class TrunkLimit:
    """Limits of a carrier or a gateway, at least one of which is set."""

    sid: str
    max_legs: int | None
    max_cps: int | None


Limits = tuple[TrunkLimit, ...]
"""Limits that a leg comes under: of its carrier, of its gateway, or none."""


def limits_of(carrier: Carrier, gateway: Gateway) -> Limits:
    """Return the limits of a leg at a gateway of a carrier."""
    found = (
        TrunkLimit(carrier.carrier_sid, carrier.max_concurrent_calls, carrier.max_cps),
        TrunkLimit(gateway.gateway_sid, gateway.max_concurrent_calls, gateway.max_cps),
    )
    return tuple(limit for limit in found if (limit.max_legs, limit.max_cps) != (None, None))


def choices_of(attempts: Sequence[RouteAttempt]) -> Sequence[Limits]:
    """
    Return the limits of the routes to a party, up to the first without any; empty if that is the first.

    A leg that comes under no limit needs no place.
    """
    choices: list[Limits] = []
    for attempt in attempts:
        limits = limits_of(attempt.carrier, attempt.gateway)
        choices.append(limits)
        if not limits:
            break
    return choices if choices and choices[0] else ()


class Place(NamedTuple):
    """A leg that takes a place; ``leg`` is its key among the legs of all servers."""

    leg: str
    limits: Limits


def first_leg(call_sid: str) -> str:
    """Key of the leg that takes its place in the transaction that inserts its call."""
    return leg_of(call_sid, 0)


def leg_of(call_sid: str, number: int) -> str:
    """Key of a leg of a call, by its number among those that take a place."""
    return f"{call_sid}/{number}"


class PlaceBook:
    """
    Legs at trunks, and their rates, as they are at one moment; decides over new legs.

    A rate is a token bucket of ``max_cps`` tokens, kept as the moment up to which it is used.

    Args:
        legs: Number of legs, by carrier or gateway.
        paced_until_us: Moment up to which a rate is used, by carrier or gateway.
    """

    def __init__(self, legs: Mapping[str, int], paced_until_us: Mapping[str, int], now_us: int) -> None:
        self._legs = dict(legs)
        self._paced_until_us = dict(paced_until_us)
        self._now_us = now_us
        self._taken: dict[str, Place] = {}

    def wait_us(self, limits: Limits) -> int:
        """Time until another leg is allowed; 0 if it is allowed now."""
        return max((self._wait_us(limit) for limit in limits), default=0)

    def take(self, leg: str, limits: Limits) -> None:
        """Count a leg."""
        self._count(limits, 1)
        self._taken[leg] = Place(leg, limits)

    def give_back(self, leg: str) -> bool:
        """Count a leg no more, which was counted here; False if it came under no limit."""
        limits = self._taken.pop(leg).limits
        self._count(limits, -1)
        return bool(limits)

    @property
    def taken(self) -> Sequence[Place]:
        """Legs that were counted here."""
        return list(self._taken.values())

    def paces(self) -> Mapping[str, int]:
        """Moments up to which rates are used now, of the trunks of legs counted here that have a rate."""
        sids = {limit.sid for place in self._taken.values() for limit in place.limits if limit.max_cps}
        return {sid: self._paced_until_us[sid] for sid in sorted(sids)}

    def _wait_us(self, limit: TrunkLimit) -> int:
        if limit.max_legs is not None and self._legs.get(limit.sid, 0) >= limit.max_legs:
            return _FULL_US
        if limit.max_cps is None:
            return 0
        used_us = self._paced_until_us.get(limit.sid, 0) - self._now_us
        return max(used_us - (limit.max_cps - 1) * _spacing_us(limit.max_cps), 0)

    def _count(self, limits: Limits, legs: int) -> None:
        for limit in limits:
            self._legs[limit.sid] = self._legs.get(limit.sid, 0) + legs
            if limit.max_cps is not None:
                since_us = max(self._paced_until_us.get(limit.sid, 0), self._now_us if legs > 0 else 0)
                self._paced_until_us[limit.sid] = since_us + legs * _spacing_us(limit.max_cps)


def sids_of(choices: Iterable[Limits]) -> list[str]:
    """Carriers and gateways of limits, each once."""
    return sorted({limit.sid for limits in choices for limit in limits})


def _spacing_us(max_cps: int) -> int:
    """Time of one leg at a rate; rounded up, so that no second has more legs than it may."""
    return -(-_SECOND_US // max_cps)
