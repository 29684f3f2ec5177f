"""Details of a failed session beside its status."""

from dataclasses import replace
from typing import TYPE_CHECKING

from sip.effects import Effect, Notify
from sip.events import Failed
from sip.location.failover import Outcome, Tried
from sip.location.rfc3263 import default_port
from sip.session.outbound_invite import Destination

if TYPE_CHECKING:
    from sip.aio.server_failover import Attempt

__all__ = ["explained", "tried_by"]


def explained(effect: Effect, trouble: str) -> Effect:
    """Add the transport's error text to the `Failed` event of a session."""
    if isinstance(effect, Notify) and isinstance(effect.event, Failed):
        return Notify(replace(effect.event, reason=trouble))
    return effect


def tried_by(event: Failed, destination: Destination, attempt: "Attempt | None") -> tuple[Tried, ...]:
    """Return the targets that a failed call tried: those of a name, or the one address it was sent to."""
    if attempt is not None:
        return attempt.tried
    if event.cause == "cancelled" or event.cause == "resolve":
        return ()
    outcome: Outcome = event.cause
    if outcome == "response" and event.status == 503:
        outcome = "unavailable"
    transport = destination.transport or "udp"
    port = destination.port or default_port(transport)
    return (Tried(transport, destination.host, port, outcome, event.retry_after_s),)
