"""Requests to the customer's server."""

from callcontrol.calls.effects import Effect
from callcontrol.calls.plan import RequestInstructions, WebhookFormat, WebhookMethod
from sip.values import frozen


@frozen
class AskWebhook(Effect):
    """
    Ask the customer's server for instructions.

    ``InstructionsReceived`` or ``InstructionsFailed`` of the same ``number`` follows. ``event`` is the reason
    of the request, ``facts`` are its results so far. ``fallback`` is the fallback of later requests that the
    instructions cause.
    """

    number: int
    url: str
    method: WebhookMethod
    event: str
    facts: tuple[tuple[str, str | int | None], ...] = ()
    format: WebhookFormat = "json"
    fallback: RequestInstructions | None = None


@frozen
class StopAsking(Effect):
    """Cancel a request; without effect when it was answered."""

    number: int
