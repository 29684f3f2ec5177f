"""
Interface of a messaging network: requests to it, and events from it.

A network may fail, be slow, or accept a message and lose the answer. So every message has a reference of the
server's (``message_id``), and a network accepts each reference once: it answers a repeated one as it did the
first time. Its events come by `NetworkEvents`, whose methods return once the event is durable; until then the
network has to keep the event and repeat it. Events that come twice, late or out of order do no harm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from callcontrol.messaging.models import ChatMessage, MessageType

ReceiptStatus = Literal["sent", "delivered", "read", "failed"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """A status of a message, with its time; ``error_code`` and ``error_message`` explain a failure."""

    message_id: str
    status: ReceiptStatus
    at: datetime
    network_ref: str | None = None
    error_code: str | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """
    A message written to a channel's number.

    ``reference`` is the network's name of it: messages with the same reference are stored once.
    """

    reference: str
    from_: str
    to: str
    type: MessageType
    content: Mapping[str, Any] = field(repr=False)
    at: datetime = field(kw_only=True)


class NetworkRefused(Exception):
    """The network will never accept the message; ``code`` is one of ours or the network's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class NetworkUnavailable(Exception):
    """The network did not answer, or is overloaded; it is not known if it accepted the message."""


class NetworkEvents(Protocol):
    """Listener to a network; an event is durable when its method returns."""

    async def receipts(self, receipts: Sequence[Receipt]) -> None:
        """
        Handle status changes of messages, at most some hundred at once.

        Raises:
            ServiceUnavailable: None of them is stored; repeat them later.
        """

    async def inbound(self, account_sid: str, message: InboundMessage) -> ChatMessage:
        """
        Handle a message written to the channel of an account; return the message as stored.

        Raises:
            ServiceUnavailable: It is not stored; repeat it later.
        """


class MessagingNetwork(Protocol):
    """A messaging network; every method returns in bounded time."""

    async def start(self, events: NetworkEvents) -> None:
        """Start reporting events."""

    async def send(self, message: ChatMessage) -> str:
        """
        Hand a message over; return the network's reference of it.

        Raises:
            NetworkRefused: The message is not accepted, and will not be however often it is sent.
            NetworkUnavailable: Send it again later, under the same reference.
        """

    async def recheck(self, messages: Sequence[ChatMessage]) -> None:
        """
        Report again, by `NetworkEvents`, the status changes of messages accepted in an earlier run.

        Raises:
            NetworkUnavailable: Ask again later.
        """

    async def close(self) -> None:
        """Stop; status changes not reported yet are reported on request after the next start."""
