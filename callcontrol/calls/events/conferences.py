"""Events of a leg in a conference."""

from dataclasses import dataclass
from typing import Literal

from callcontrol.ids import LegId


@dataclass(frozen=True, slots=True)
class ConferenceEntered:
    """The leg has joined; it ``waits`` when the conference has not begun."""

    leg: LegId
    waits: bool


@dataclass(frozen=True, slots=True)
class ConferenceBegan:
    """The conference that the leg waits for has begun."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class ConferenceRefused:
    """The leg may not join: the conference is full, or the media engine refused it."""

    leg: LegId
    problem: Literal["full", "media"]


@dataclass(frozen=True, slots=True)
class ConferenceOver:
    """The conference is over; the leg has left it."""

    leg: LegId
