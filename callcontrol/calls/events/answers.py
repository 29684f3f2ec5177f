"""Answers of routing and the wallet."""

from collections.abc import Sequence
from enum import IntEnum, auto

from callcontrol.calls.events import Event
from callcontrol.calls.hangup_cause import HangupCause
from callcontrol.models.parties import RouteAttempt
from sip.values import frozen


@frozen
class RouteFound(Event):
    """The gateways through which a party may be dialled, best first; never empty."""

    attempts: Sequence[RouteAttempt]


@frozen
class RouteRefused(Event):
    """A party may not be dialled, or there is no gateway to it now."""

    cause: HangupCause
    message: str


@frozen
class ReserveExtended(Event):
    """The wallet now holds this much for the call."""

    total_paise: int


@frozen
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


@frozen
class TimerFired(Event):
    """A timer armed by the machine has fired."""

    timer: Timer
