"""What becomes of a leg in a conference."""

from dataclasses import dataclass
from typing import Literal

from callcontrol.ids import LegId


@dataclass(frozen=True, slots=True)
class ConferenceEntered:
    """The leg is there; it ``waits`` when the conference has not begun."""

    leg: LegId
    waits: bool


@dataclass(frozen=True, slots=True)
class ConferenceBegan:
    """The conference that the leg waits for has begun."""

    leg: LegId


@dataclass(frozen=True, slots=True)
class ConferenceRefused:
    """The leg is not let in: the conference is full, or the media engine cannot have it."""

    leg: LegId
    problem: Literal["full", "media"]


@dataclass(frozen=True, slots=True)
class ConferenceOver:
    """The conference is over; the leg is in it no more."""

    leg: LegId
