"""Timers of a call."""

from dataclasses import dataclass
from enum import IntEnum, auto


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
class TimerFired:
    """A timer armed by the machine has fired."""

    timer: Timer
