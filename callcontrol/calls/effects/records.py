"""Effects on routing, timers, money and records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from callcontrol.calls.effects import Effect
from callcontrol.calls.events.answers import Timer
from callcontrol.models import Message, TranscriptSegment
from callcontrol.models.parties import Party


@dataclass(frozen=True, slots=True)
class FindRoute(Effect):
    """Look up gateways to a party; ``RouteFound`` or ``RouteRefused`` follows at once."""

    party: Party


@dataclass(frozen=True, slots=True)
class RestGateway(Effect):
    """Put a gateway into cooldown, as its Retry-After demands."""

    gateway_sid: str
    rest_s: float


@dataclass(frozen=True, slots=True)
class Arm(Effect):
    """Start a timer, replacing a running one of the same name."""

    timer: Timer
    delay_s: float


@dataclass(frozen=True, slots=True)
class Disarm(Effect):
    """Stop a timer, if it runs."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class ExtendReserve(Effect):
    """Extend the reserve of the call to a total; ``ReserveExtended`` or ``ReserveRefused`` follows."""

    total_paise: int


@dataclass(frozen=True, slots=True)
class Save(Effect):
    """
    Write the present state of the record, with an event for the customer if one is named.

    ``shown`` is the call at the time of the event, when it may have changed since.
    """

    event: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class KeepMessage(Effect):
    """Save a message that a party left, so that it can be fetched like a recording."""

    message: Message


@dataclass(frozen=True, slots=True)
class Transcribe(Effect):
    """Add a segment to the transcript of the call."""

    segment: TranscriptSegment


@dataclass(frozen=True, slots=True)
class Finish(Effect):
    """Write the last state of the call, settle its reserve and publish ``call.completed``."""

    charge_paise: int
