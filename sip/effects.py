"""
Effects returned by the state machines: send a message, arm a timer, notify the layer above.

Effects are plain values. The machines never send, sleep or read a clock; the transaction layer performs the
effects in order.
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
    """Reason a client transaction ended without a final response."""

    TIMEOUT = "timeout"
    TRANSPORT = "transport"
    RESOLVE = "resolve"


class Purpose(IntEnum):
    """Purpose of a request; its responses are routed by it."""

    INVITE = 0
    REINVITE = 1
    BYE = 2
    INFO = 3
    FORK_BYE = 4
    """BYE to a fork that answered too late."""
    PRACK = 5
    UPDATE = 6
    REFER = 7
    NOTIFY = 8
    REGISTER = 9
    REFRESH = 10
    """UPDATE without an offer that refreshes the session timer."""


class CancelStep(Enum):
    """Steps of cancelling an outbound INVITE."""

    ABANDON = "abandon"
    """No response came yet: stop repeating the INVITE, and wait (RFC 3261 9.1 forbids a CANCEL here)."""
    CANCEL = "cancel"
    GIVE_UP = "give_up"
    """No final response followed the CANCEL: forget the transaction."""


class Effect:
    """Base of all effects."""

    __slots__ = ()


class Send(Effect):
    """Send these bytes to the peer of the transaction."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Arm(Effect):
    """Feed `event` back after `delay_s`; replaces a running timer of that event."""

    __slots__ = ("delay_s", "event")

    def __init__(self, event: int, delay_s: float) -> None:
        self.event = event
        self.delay_s = delay_s


class Disarm(Effect):
    """Cancel the timer of `event`; no-op when it is not running."""

    __slots__ = ("event",)

    def __init__(self, event: int) -> None:
        self.event = event


class Deliver(Effect):
    """Pass a message to the transaction user."""

    __slots__ = ("message",)

    def __init__(self, message: "Message") -> None:
        self.message = message


class Fail(Effect):
    """Notify the transaction user that no final response will come."""

    __slots__ = ("failure",)

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class Done(Effect):
    """The machine has ended: remove it and its timers."""

    __slots__ = ()


class StartRequest(Effect):
    """
    Send a request in its own client transaction; its outcome is fed back under `purpose`.

    The request goes to `next_hop`, or with None to the destination of the session.
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
    """Cancel the INVITE or re-INVITE sent last under `purpose`; `reason` is the Reason of the CANCEL."""

    __slots__ = ("purpose", "reason", "step")

    def __init__(
        self, step: CancelStep, purpose: Purpose = Purpose.INVITE, reason: str | None = None
    ) -> None:
        self.step = step
        self.purpose = purpose
        self.reason = reason


class Respond(Effect):
    """Send a response in a server transaction, which is opaque to the machines."""

    __slots__ = ("response", "transaction")

    def __init__(self, transaction: Any, response: "Response") -> None:
        self.transaction = transaction
        self.response = response


class Notify(Effect):
    """Report an event to the session's owner."""

    __slots__ = ("event",)

    def __init__(self, event: "SessionEvent") -> None:
        self.event = event
