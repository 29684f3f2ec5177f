"""Answers of routing and the wallet."""

from collections.abc import Sequence
from dataclasses import dataclass

from callcontrol.calls.hangup_cause import HangupCause
from callcontrol.routing.targets import Attempt


@dataclass(frozen=True, slots=True)
class RouteFound:
    """The gateways through which a party may be dialled, best first; never empty."""

    attempts: Sequence[Attempt]


@dataclass(frozen=True, slots=True)
class RouteRefused:
    """A party may not be dialled, or there is no gateway to it now."""

    cause: HangupCause
    message: str


@dataclass(frozen=True, slots=True)
class ReserveExtended:
    """The wallet now holds this much for the call."""

    total_paise: int


@dataclass(frozen=True, slots=True)
class ReserveRefused:
    """The wallet cannot hold more for the call."""
