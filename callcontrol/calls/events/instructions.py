"""Instructions for a call, from the customer's server."""

from collections.abc import Sequence
from typing import Literal

from callcontrol.calls.events import Event
from callcontrol.calls.plan import Step
from sip.values import frozen

InstructionProblem = Literal[
    "dns", "connect", "tls", "http_status", "timeout", "protocol", "instruction", "limit", "state"
]


@frozen
class InstructionsReceived(Event):
    """The customer's server answered; no steps means that it has no instructions."""

    number: int
    steps: Sequence[Step]


@frozen
class InstructionsFailed(Event):
    """
    The customer's server could not be asked, or its instructions are invalid (``instruction``).

    ``message`` describes the problem for people.
    """

    number: int
    reason: InstructionProblem
    message: str
    http_status: int | None = None
    attempts: int = 1
