"""
Receipts and inbound texts: their effect on the state of a message, and on the consent of a contact.

Receipts come from outside: late, twice and out of order. A message moves forward only: earlier states are
ignored, and a skipped state counts as passed (a message that was read had been delivered).
"""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Any, Final

from callcontrol.messaging.models import MessageStatus

STOP_WORDS: Final = frozenset(
    {"stop", "stopall", "unsubscribe", "cancel", "end", "quit", "optout", "opt out"}
)
START_WORDS: Final = frozenset({"start", "unstop", "subscribe", "optin", "opt in"})

_MAX_CHARS: Final = 20


class State(IntEnum):
    """State of a message; the names are those of ``MessageStatus``."""

    QUEUED = 0
    SENT = 1
    DELIVERED = 2
    READ = 3
    FAILED = 4
    RECEIVED = 5


class ReceiptKind(Enum):
    """Status that a receipt reports."""

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
Pairs without an effect: duplicates, late receipts and impossible ones.

A delivered message cannot fail, a failed message has ended, and received messages have no receipts.
"""


_PASSED: Final[Mapping[tuple[str, str], Any]] = {
    (state.name.lower(), kind.value): tuple(each.name.lower() for each in rule[1])
    for (state, kind), rule in RULES.items()
}


def passed(status: MessageStatus, receipt: str) -> tuple[MessageStatus, ...]:
    """The statuses that a receipt moves a message through, in order; empty when it changes nothing."""
    found: tuple[MessageStatus, ...] = _PASSED.get((status, receipt), ())
    return found


def preference(text: str | None) -> bool | None:
    """
    True if the sender opts in, False if the sender opts out, None when the text says neither.

    Only a message that consists of one of the words counts: "please stop calling me names" does not opt out.
    """
    if text is None or len(text) > _MAX_CHARS:
        return None
    word = " ".join(text.casefold().strip(" .!\t\r\n").split())
    if word in STOP_WORDS:
        return False
    return True if word in START_WORDS else None
