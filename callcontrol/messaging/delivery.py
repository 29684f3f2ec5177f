"""
How a message moves: a table of what each receipt does to it.

Receipts come from outside, so they come late, twice and out of order. A message goes forward only: what is
behind it is ignored, and a state that was skipped has been passed (what was read had been delivered).
"""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final

from callcontrol.messaging.models import MessageStatus

__all__ = ["IGNORED", "RULES", "ReceiptKind", "State", "passed"]


class State(IntEnum):
    """Where a message is; the names are those of ``MessageStatus``."""

    QUEUED = 0
    SENT = 1
    DELIVERED = 2
    READ = 3
    FAILED = 4
    RECEIVED = 5


class ReceiptKind(Enum):
    """What a receipt says."""

    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"


Pair = tuple[State, ReceiptKind]

RULES: Final[Mapping[Pair, tuple[State, tuple[State, ...]]]] = {
    (State.QUEUED, ReceiptKind.SENT): (State.SENT, (State.SENT,)),
    (State.QUEUED, ReceiptKind.DELIVERED): (State.DELIVERED, (State.SENT, State.DELIVERED)),
    (State.QUEUED, ReceiptKind.READ): (State.READ, (State.SENT, State.DELIVERED, State.READ)),
    (State.QUEUED, ReceiptKind.FAILED): (State.FAILED, (State.FAILED,)),
    (State.SENT, ReceiptKind.DELIVERED): (State.DELIVERED, (State.DELIVERED,)),
    (State.SENT, ReceiptKind.READ): (State.READ, (State.DELIVERED, State.READ)),
    (State.SENT, ReceiptKind.FAILED): (State.FAILED, (State.FAILED,)),
    (State.DELIVERED, ReceiptKind.READ): (State.READ, (State.READ,)),
}
"""The new state, and every state that the message has passed on its way, in order."""

IGNORED: Final[frozenset[Pair]] = frozenset(
    (state, kind) for state in State for kind in ReceiptKind if (state, kind) not in RULES
)
"""
Doubles, what comes late, and what cannot be: one that arrived has not failed, one that failed has ended, and
nothing is told of those that were received.
"""


def passed(status: MessageStatus, receipt: str) -> tuple[MessageStatus, ...]:
    """The statuses that a receipt takes a message through, in order; none when it changes nothing."""
    return _PASSED[status, receipt]


_WORDS: Final[Mapping[State, MessageStatus]] = {
    State.QUEUED: "queued",
    State.SENT: "sent",
    State.DELIVERED: "delivered",
    State.READ: "read",
    State.FAILED: "failed",
    State.RECEIVED: "received",
}
_PASSED: Final[Mapping[tuple[str, str], tuple[MessageStatus, ...]]] = {
    (_WORDS[state], kind.value): (
        tuple(_WORDS[each] for each in RULES[state, kind][1]) if (state, kind) in RULES else ()
    )
    for state in State
    for kind in ReceiptKind
}
