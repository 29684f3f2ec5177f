"""Routing, time, money and records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from callcontrol.calls.events import Timer
from callcontrol.models import Message, TranscriptSegment
from callcontrol.routing.party import Party


@dataclass(frozen=True, slots=True)
class FindRoute:
    """Look for gateways to a party; ``RouteFound`` or ``RouteRefused`` follows at once."""

    party: Party


@dataclass(frozen=True, slots=True)
class RestGateway:
    """Leave a gateway alone for a while: it said so itself (Retry-After)."""

    gateway_sid: str
    rest_s: float


@dataclass(frozen=True, slots=True)
class Arm:
    """Start a timer, replacing the one that runs under the same name."""

    timer: Timer
    delay_s: float


@dataclass(frozen=True, slots=True)
class Disarm:
    """Stop a timer, if it runs."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class ExtendReserve:
    """Have the wallet hold a total for the call; ``ReserveExtended`` or ``ReserveRefused`` follows."""

    total_paise: int


@dataclass(frozen=True, slots=True)
class Save:
    """
    Write the record as it is now, together with an event for the customer if one is named.

    ``shown`` is the call as it was when the event came about, when it may have gone on since.
    """

    event: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class KeepMessage:
    """Keep a message that a party left, so that it can be fetched like a recording."""

    message: Message


@dataclass(frozen=True, slots=True)
class Transcribe:
    """Add what was said to the transcript of the call."""

    segment: TranscriptSegment


@dataclass(frozen=True, slots=True)
class Finish:
    """Write the last state of the call, settle its reserve and publish ``call.completed``."""

    charge_paise: int
