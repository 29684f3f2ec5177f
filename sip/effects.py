"""
Effects returned by the state machines: send a message, arm a timer, notify the layer above.

Effects are plain values; events for the owner of a session are effects too. The machines never send, sleep or
read a clock; the session or the registration performs the effects in order.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

from sip.values import frozen

if TYPE_CHECKING:
    from sip.message.message import Request, Response
    from sip.message.uri import SipUri


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


@frozen
class Arm(Effect):
    """Feed `event` back after `delay_s`; replaces a running timer of that event."""

    event: int
    delay_s: float


@frozen
class Disarm(Effect):
    """Cancel the timer of `event`; no-op when it is not running. One object serves all sessions."""

    event: int


class Done(Effect):
    """The machine has ended: remove it and its timers."""

    __slots__ = ()


@frozen
class StartRequest(Effect):
    """
    Send a request in its own client transaction; its outcome is fed back under `purpose`.

    The request goes to `next_hop`, or with None to the destination of the session.
    """

    request: Request
    purpose: Purpose
    next_hop: SipUri | None


@frozen
class SendAck(Effect):
    """Send the ACK of a 2xx, which belongs to no transaction (RFC 3261 13.2.2.4)."""

    request: Request
    next_hop: SipUri


@frozen
class CancelInvite(Effect):
    """Cancel the INVITE or re-INVITE sent last under `purpose`; `reason` is the Reason of the CANCEL."""

    step: CancelStep
    purpose: Purpose = Purpose.INVITE
    reason: str | None = None


@frozen
class Respond(Effect):
    """Send a response in a server transaction, which is opaque to the machines."""

    transaction: Any
    response: Response
