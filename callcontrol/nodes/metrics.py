"""Counters and histograms of what a node does for others and asks of them."""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from callcontrol.histogram import Histogram

_ADOPTION_BUCKETS_S: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_FORWARD_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class AdoptionOutcome(Enum):
    """Outcome of an adoption; one that failed or was lost is attempted again."""

    COMPLETED = "completed"
    FAILED = "failed"
    LOST = "lost"


class ForwardOutcome(Enum):
    """
    Outcome of a request that another node must answer.

    Attributes:
        ANSWERED: The node answered, whatever its status.
        NO_NODE: The node is dead, or has no address that can be used.
        NOT_CONNECTED: It could not be connected to.
        NOT_ANSWERED: It was sent the request, and the head of the response is missing.
        SECOND_HOP: The request had been forwarded already.
    """

    ANSWERED = "answered"
    NO_NODE = "no_node"
    NOT_CONNECTED = "not_connected"
    NOT_ANSWERED = "not_answered"
    SECOND_HOP = "second_hop"


@dataclass(slots=True)
class AdoptionMetrics:
    """
    Adoptions of dead nodes by this one.

    Attributes:
        outcomes: Number of adoptions, by the values of ``AdoptionOutcome``.
        calls: Calls of dead nodes that were ended.
        took_s: Durations of completed ones, from the claim on.
    """

    outcomes: Counter[str] = field(
        default_factory=lambda: Counter({each.value: 0 for each in AdoptionOutcome})
    )
    calls: int = 0
    took_s: Histogram = field(default_factory=lambda: Histogram(_ADOPTION_BUCKETS_S))


@dataclass(slots=True)
class ForwardMetrics:
    """
    Requests that were forwarded to other nodes, or should have been.

    Attributes:
        outcomes: Number of requests, by the values of ``ForwardOutcome``.
        took_s: Times to the head of the response, of those that were answered.
    """

    outcomes: Counter[str] = field(
        default_factory=lambda: Counter({each.value: 0 for each in ForwardOutcome})
    )
    took_s: Histogram = field(default_factory=lambda: Histogram(_FORWARD_BUCKETS_S))

    def note(self, outcome: ForwardOutcome) -> None:
        """Count a request."""
        self.outcomes[outcome.value] += 1

    def answered(self, took_s: float) -> None:
        """Count a request whose response has begun."""
        self.note(ForwardOutcome.ANSWERED)
        self.took_s.observe(took_s)
