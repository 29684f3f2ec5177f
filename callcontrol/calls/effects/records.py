"""Effects on routing, timers, money and records."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from callcontrol.calls.effects import Effect
from callcontrol.calls.events.answers import Timer
from callcontrol.models import Message, TranscriptSegment
from callcontrol.models.parties import Party
from sip.values import frozen


@frozen
class FindRoute(Effect):
    """Look up gateways to a party; ``RouteFound`` or ``RouteRefused`` follows at once."""

    party: Party


@frozen
class RestGateway(Effect):
    """Put a gateway into cooldown, as its Retry-After demands."""

    gateway_sid: str
    rest_s: float


@frozen
class Arm(Effect):
    """Start a timer, replacing a running one of the same name."""

    timer: Timer
    delay_s: float


@frozen
class Disarm(Effect):
    """Stop a timer, if it runs."""

    timer: Timer


@frozen
class ExtendReserve(Effect):
    """Extend the reserve of the call to a total; ``ReserveExtended`` or ``ReserveRefused`` follows."""

    total_paise: int


@frozen
class Save(Effect):
    """
    Write the present state of the record, with an event for the customer if one is named.

    ``shown`` is the call at the time of the event, when it may have changed since. A sentence of a transcript
    is also sent to ``hook_url``, in jambonz's form.
    """

    event: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] | None = None
    hook_url: str | None = None


def unheard(reason: str, message: str, url: str | None) -> Save:
    """Return the report, to the customer's status webhook, of a sound that could not be played."""
    details = {"reason": reason, "message": message, "http_status": None, "attempts": 1, "webhook_url": url}
    return Save("webhook.failed", details)


@frozen
class KeepMessage(Effect):
    """Save a message that a party left, so that it can be fetched like a recording."""

    message: Message


@frozen
class Transcribe(Effect):
    """Add a segment to the transcript of the call."""

    segment: TranscriptSegment


@frozen
class Finish(Effect):
    """Write the last state of the call, settle its reserve and publish ``call.completed``."""

    charge_paise: int
