"""
What the state machines ask of the shell: to send, to arm a timer, to tell the layer above.

Effects are plain values. The machines never send, sleep or read a clock; the endpoint performs what
they return, in order.
"""

from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sip.events import SessionEvent
    from sip.message import Message, Request, Response

__all__ = [
    "Arm",
    "CancelInvite",
    "Deliver",
    "Disarm",
    "Done",
    "Effect",
    "Fail",
    "Failure",
    "Notify",
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


class Effect:
    """Base of all effects."""

    __slots__ = ()


class Send(Effect):
    """Put these bytes on the wire, to the peer of the transaction."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Arm(Effect):
    """Feed `event` back once `delay_s` has passed."""

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
    """Send a request in a client transaction of its own; its outcome is fed back under `purpose`."""

    __slots__ = ("purpose", "request")

    def __init__(self, request: "Request", purpose: int) -> None:
        self.request = request
        self.purpose = purpose


class SendAck(Effect):
    """Send the ACK of a 2xx, which belongs to no transaction (RFC 3261 13.2.2.4)."""

    __slots__ = ("request",)

    def __init__(self, request: "Request") -> None:
        self.request = request


class CancelInvite(Effect):
    """Send a CANCEL for the session's INVITE transaction (`cancel`), stop repeating it, or give it up."""

    __slots__ = ("how",)

    def __init__(self, how: str) -> None:
        self.how = how


class Respond(Effect):
    """Send a response in a server transaction."""

    __slots__ = ("response", "transaction")

    def __init__(self, transaction: Any, response: "Response") -> None:
        self.transaction = transaction
        self.response = response


class Notify(Effect):
    """Tell the session's owner."""

    __slots__ = ("event",)

    def __init__(self, event: "SessionEvent") -> None:
        self.event = event
