"""What a call is to do, as the customer's server or its masking session says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from callcontrol.calls.plan import Step
from callcontrol.masking.routing import RouteFinding

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


@dataclass(frozen=True, slots=True)
class CallerRouted:
    """Whom the caller of a masked number reaches; ``found`` is None when that could not be found out."""

    number: int
    found: RouteFinding | None
