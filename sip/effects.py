"""
What the state machines ask of the shell: to send, to arm a timer, to tell the layer above.

Effects are plain values. The machines never send, sleep or read a clock; the endpoint performs what
they return, in order.
"""

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sip.events import SessionEvent
    from sip.message.message import Message, Request, Response
    from sip.message.uri import SipUri

__all__ = [
    "Arm",
    "CancelInvite",
    "CancelStep",
    "Deliver",
    "Disarm",
    "Done",
    "Effect",
    "Fail",
    "Failure",
    "Notify",
    "Purpose",
    "Respond",
    "Send",
    "SendAck",
    "StartRequest",
]


class Failure(Enum):
    """Why a client transaction ended without a final response."""

    TIMEOUT = "timeout"
    TRANSPORT = "transport"
    RESOLVE = "resolve"


class Purpose(IntEnum):
    """What a session sent a request for."""

    INVITE = 0
    REINVITE = 1
    BYE = 2
    INFO = 3
    FORK_BYE = 4
    """Hangs up a fork that answered too late."""
    PRACK = 5
    UPDATE = 6
    REFER = 7
    NOTIFY = 8
    REGISTER = 9
    REFRESH = 10
    """An UPDATE that offers nothing: it keeps the session alive."""


class CancelStep(Enum):
    """How far an INVITE of ours is to be taken back."""

    ABANDON = "abandon"
    """Nothing came back yet: repeat it no more, and wait (RFC 3261 9.1 forbids a CANCEL here)."""
    CANCEL = "cancel"
    GIVE_UP = "give_up"
    """No final response followed the CANCEL: forget the transaction."""


class Effect:
    """Base of all effects."""

    __slots__ = ()


class Send(Effect):
    """Put these bytes on the wire, to the peer of the transaction."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Arm(Effect):
    """Feed `event` back once `delay_s` has passed; a running timer of that event is replaced."""

    __slots__ = ("delay_s", "event")

    def __init__(self, event: int, delay_s: float) -> None:
        self.event = event
        self.delay_s = delay_s


class Disarm(Effect):
    """Take back the timer of `event`; nothing happens when it is not running."""

    __slots__ = ("event",)

    def __init__(self, event: int) -> None:
        self.event = event


class Deliver(Effect):
    """Hand a message to the transaction's user."""

    __slots__ = ("message",)

    def __init__(self, message: "Message") -> None:
        self.message = message


class Fail(Effect):
    """Tell the transaction's user that no final response will come."""

    __slots__ = ("failure",)

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class Done(Effect):
    """The machine has ended: forget it and its timers."""

    __slots__ = ()


class StartRequest(Effect):
    """
    Send a request in a client transaction of its own; its outcome is fed back under `purpose`.

    It goes to `next_hop`, or to the destination the session was made with when that is None.
    """

    __slots__ = ("next_hop", "purpose", "request")

    def __init__(self, request: "Request", purpose: Purpose, next_hop: "SipUri | None") -> None:
        self.request = request
        self.purpose = purpose
        self.next_hop = next_hop


class SendAck(Effect):
    """Send the ACK of a 2xx, which belongs to no transaction (RFC 3261 13.2.2.4)."""

    __slots__ = ("next_hop", "request")

    def __init__(self, request: "Request", next_hop: "SipUri") -> None:
        self.request = request
        self.next_hop = next_hop


class CancelInvite(Effect):
    """Take back the INVITE or re-INVITE sent last under `purpose`; `reason` is for the CANCEL to give."""

    __slots__ = ("purpose", "reason", "step")

    def __init__(
        self, step: CancelStep, purpose: Purpose = Purpose.INVITE, reason: str | None = None
    ) -> None:
        self.step = step
        self.purpose = purpose
        self.reason = reason


class Respond(Effect):
    """Send a response in a server transaction, which is the shell's affair and opaque here."""

    __slots__ = ("response", "transaction")

    def __init__(self, transaction: Any, response: "Response") -> None:
        self.transaction = transaction
        self.response = response


class Notify(Effect):
    """Tell the session's owner."""

    __slots__ = ("event",)

    def __init__(self, event: "SessionEvent") -> None:
        self.event = event
