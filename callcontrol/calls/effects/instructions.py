"""Questions to the customer's server."""

from dataclasses import dataclass

from callcontrol.calls.plan import Consult, WebhookFormat, WebhookMethod


@dataclass(frozen=True, slots=True)
class AskWebhook:
    """
    Ask the customer's server what to do with the call.

    ``InstructionsReceived`` or ``InstructionsFailed`` of the same ``number`` follows. ``event`` is the word
    that tells the server why it is asked, ``facts`` what has come of it. ``fallback`` is whom questions go
    to in case of need that the answer brings about.
    """

    number: int
    url: str
    method: WebhookMethod
    event: str
    facts: tuple[tuple[str, str | int | None], ...] = ()
    format: WebhookFormat = "json"
    fallback: Consult | None = None


@dataclass(frozen=True, slots=True)
class RouteCaller:
    """
    Find out whom a caller reaches by a masked number; both are in E.164.

    ``CallerRouted`` of the same ``number`` follows. A caller who shows no number is None.
    """

    number: int
    caller_number: str | None
    masked_number: str


@dataclass(frozen=True, slots=True)
class StopAsking:
    """Nobody waits any more for what a server answers; without effect when it has answered."""

    number: int
