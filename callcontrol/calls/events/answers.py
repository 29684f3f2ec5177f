"""Answers of routing and the wallet."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, auto

from callcontrol.calls.events import Event
from callcontrol.calls.hangup_cause import HangupCause
from callcontrol.models.parties import RouteAttempt


@dataclass(frozen=True, slots=True)
class RouteFound(Event):
    """The gateways through which a party may be dialled, best first; never empty."""

    attempts: Sequence[RouteAttempt]


@dataclass(frozen=True, slots=True)
class RouteRefused(Event):
    """A party may not be dialled, or there is no gateway to it now."""

    cause: HangupCause
    message: str


@dataclass(frozen=True, slots=True)
class ReserveExtended(Event):
    """The wallet now holds this much for the call."""

    total_paise: int


@dataclass(frozen=True, slots=True)
class ReserveRefused(Event):
    """The wallet cannot hold more for the call."""


class Timer(IntEnum):
    """The timers of a call; each is armed at most once at any time."""

    RING = auto()
    PAUSE = auto()
    DRAIN = auto()
    TIME_LIMIT = auto()
    MONEY = auto()
    RECORDING = auto()
    TRANSFER = auto()
    WARNING = auto()
    TALK = auto()
    RECONNECT = auto()


@dataclass(frozen=True, slots=True)
class TimerFired(Event):
    """A timer armed by the machine has fired."""

    timer: Timer
