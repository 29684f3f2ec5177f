"""What the customer's server says of a call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from callcontrol.plan import Step

InstructionProblem = Literal[
    "dns", "connect", "tls", "http_status", "timeout", "protocol", "instruction", "limit", "state"
]


@dataclass(frozen=True, slots=True)
class InstructionsReceived:
    """The customer's server said what to do with the call; without any step it has nothing to say."""

    number: int
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class InstructionsFailed:
    """
    The customer's server could not be asked, or its answer cannot be followed (``instruction``).

    ``message`` says for people what was wrong.
    """

    number: int
    reason: InstructionProblem
    message: str
    http_status: int | None = None
    attempts: int = 1
