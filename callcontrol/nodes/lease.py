"""
Lease of a node: its lengths, and what a node may conclude from its own renewals.

The clock that decides over a lease is the database's. The node's own clock only tells how long it has renewed
without a gap: a database that was away has kept all nodes from renewing, and nobody may be adopted for that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

_MARGIN_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """
    Times of leases.

    Attributes:
        lease_s: Time after its last renewal that a node counts as living.
        renew_every_s: Pause between two renewals.
        retry_s: Pause after a renewal that failed with the database.
        adoption_s: Time that an adopter has for the calls of a dead node, before another may try.
    """

    lease_s: float = 8.0
    renew_every_s: float = 2.0
    retry_s: float = 0.5
    adoption_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Node:
    """
    A server that shares the database.

    Attributes:
        incarnation: Random identifier of one run of the node; adoption changes it.
        place: Machine, boot and data directory of that run: see ``callcontrol.nodes.aio.place_of``.
        url: Address of its API.
        lease_left_s: Time left of its lease; negative when it is over.
        adopted_by: The node that ends its calls, if one does.
        is_draining: It takes no new calls, or will not from its next renewal on.
        sip_address: Host and port of its SIP for other nodes; None if it has none.
    """

    node: str
    incarnation: str
    place: str
    url: str
    lease_left_s: float
    adopted_by: str | None = None
    is_draining: bool = False
    sip_address: str | None = None

    @property
    def state(self) -> "NodeState":
        """State at the moment for which ``lease_left_s`` is; that of an adopted node is its adopter's."""
        if self.lease_left_s <= 0:
            return NodeState.DEAD
        if self.adopted_by is not None:
            return NodeState.BEING_ADOPTED
        return NodeState.DRAINING if self.is_draining else NodeState.UP

    @property
    def is_living(self) -> bool:
        """Return True while it holds its own lease."""
        return self.state in _LIVING


class NodeState(Enum):
    """State of a node as others see it."""

    UP = "up"
    DRAINING = "draining"
    DEAD = "dead"
    BEING_ADOPTED = "being_adopted"


_LIVING: Final = frozenset({NodeState.UP, NodeState.DRAINING})


@dataclass(frozen=True, slots=True)
class NodeReport:
    """
    A node as its operator sees it.

    Attributes:
        started_at: Start of its present run.
        draining_since: Moment from which it is to drain.
        active_calls: Calls without an end.
        duties: Duties that it has or, when it is dead, had.
        version: Version of its program; None for one that does not say so.
        schema_revision: Newest schema that its program knows.
    """

    node: Node
    started_at: datetime
    draining_since: datetime | None
    active_calls: int
    duties: tuple[str, ...]
    version: str | None = None
    schema_revision: str | None = None


class RenewalRecord:
    """
    The renewals of this node, by its own monotonic clock.

    After two leases without a gap every living node must have renewed as well: a lease that is over then
    means that its node is dead, and not that the database was away.
    """

    def __init__(self, now_s: float, lease_s: float) -> None:
        self._lease_s = lease_s
        self._since_s = now_s
        self._last_s = now_s

    def renewed(self, now_s: float) -> None:
        """Record a renewal; one that came after the lease was over begins anew."""
        if now_s - self._last_s > self._lease_s:
            self._since_s = now_s
        self._last_s = now_s

    def failed(self, now_s: float) -> None:
        """Record a renewal that the database did not accept."""
        self._since_s = self._last_s = now_s

    def may_adopt(self, now_s: float) -> bool:
        """Return True if a lease that is over means that its node is dead."""
        return now_s - self._last_s <= self._lease_s and now_s - self._since_s >= 2 * self._lease_s


def wait_s(settings: LeaseSettings, others: Sequence[Node]) -> float:
    """Time until the next renewal, or until the first lease of another node can be over."""
    ends = [node.lease_left_s + _MARGIN_S for node in others if node.lease_left_s > 0]
    return min([settings.renew_every_s, *ends])
