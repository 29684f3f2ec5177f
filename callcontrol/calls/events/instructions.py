"""Instructions for a call, from the customer's server or its masking session."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from callcontrol.calls.events import Event
from callcontrol.calls.plan import Connect, Step
from callcontrol.models.routes import DEFAULT_RING_TIMEOUT_S, Party, PhoneTarget

InstructionProblem = Literal[
    "dns", "connect", "tls", "http_status", "timeout", "protocol", "instruction", "limit", "state"
]


@dataclass(frozen=True, slots=True)
class InstructionsReceived(Event):
    """The customer's server answered; no steps means that it has no instructions."""

    number: int
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class CallerRoute:
    """Target of a caller, in E.164, with settings of the call; and the session that routes it, if any."""

    target_number: str
    record: bool
    max_duration_s: int | None = None
    session_id: str | None = None

    def connect(self, masked_number: str) -> Connect:
        """The step that joins the two."""
        party = Party(PhoneTarget(self.target_number), masked_number, ring_timeout_s=DEFAULT_RING_TIMEOUT_S)
        limit_s = None if self.max_duration_s is None else float(self.max_duration_s)
        return Connect(party, limit_s, self.record)


UnroutedReason = Literal["unknown", "rejected"]
"""No session or webhook names a target, or the customer's server rejects the caller."""

RoutingResult = CallerRoute | UnroutedReason


@dataclass(frozen=True, slots=True)
class CallerRouted(Event):
    """The party that the caller of a masked number reaches; ``found`` is None when the lookup failed."""

    number: int
    found: RoutingResult | None
