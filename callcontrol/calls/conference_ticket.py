"""
Tickets for legs between nodes: a caller of one node joins a conference of another with one.

A ticket is sealed with the secret key that all nodes have, so nobody else can make, read or change one. It is
for one run of one node, opens one leg, and is valid for a minute.
"""

from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from callcontrol.calls.conference_room import MemberTerms
from callcontrol.database.encryption import Cipher
from callcontrol.database.statements import pack_exact, unpack
from callcontrol.errors import SecretsUnreadable

VALID_S: Final = 60
"""Validity of a ticket, which includes the difference between the clocks of two nodes."""

_PURPOSE: Final = "conference leg"
_MAX_USED: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConferenceTicket:
    """
    Request of a node to add a party of one of its calls to a conference of another node.

    Attributes:
        call_id: Call-ID of the leg; each ticket has its own.
        node: Node that makes the leg.
        incarnation: Run of the node that has the conference.
        call_sid: Call of the party.
        made_at_s: Wall-clock time in seconds.
    """

    call_id: str
    node: str
    incarnation: str
    account_sid: str
    conference: str
    call_sid: str
    terms: MemberTerms
    max_members: int
    made_at_s: float

    def seal(self, cipher: Cipher) -> str:
        """Return the ticket as a header field's value."""
        return cipher.seal(_PURPOSE, pack_exact(asdict(self)))

    @classmethod
    def open(cls, cipher: Cipher, sealed: str) -> Self | None:
        """Return the ticket that ``seal`` made; None for any other text."""
        try:
            values: dict[str, Any] = unpack(cipher.open(_PURPOSE, sealed))
        except SecretsUnreadable:
            return None
        try:
            return cls(**{**values, "terms": MemberTerms(**values["terms"])})
        except (KeyError, TypeError):
            return None  # A node of another version made it.


class TicketGate:
    """
    Accepts each ticket for one run of a node once.

    Args:
        cipher: Seals and opens tickets.
        incarnation: The run that the tickets must be for.
    """

    def __init__(self, cipher: Cipher, incarnation: str) -> None:
        self._cipher = cipher
        self._incarnation = incarnation
        self._used: OrderedDict[str, float] = OrderedDict()

    def accept(self, sealed: str, call_id: str, now_s: float) -> ConferenceTicket | None:
        """Return the ticket of a leg with this Call-ID; None if it is not valid, or was used before."""
        ticket = ConferenceTicket.open(self._cipher, sealed)
        if ticket is None or (ticket.call_id, ticket.incarnation) != (call_id, self._incarnation):
            return None
        if abs(now_s - ticket.made_at_s) > VALID_S or call_id in self._used:
            return None
        self._forget(now_s)
        # A full memory must not let a ticket pass twice.
        if len(self._used) >= _MAX_USED:
            return None
        self._used[call_id] = now_s
        return ticket

    def _forget(self, now_s: float) -> None:
        """Forget tickets that time alone refuses by now; one may come from a clock that is ahead."""
        while self._used and now_s - next(iter(self._used.values())) > 2 * VALID_S:
            self._used.popitem(last=False)
