"""
What a messaging network is asked, and what it tells of by itself.

A network lies outside the edge. It may fail, take long, or have taken a message when its answer got lost, so
every message goes under a reference of ours (``message_id``) and a network takes each reference once: given
it again, it answers as it did the first time. What it tells comes back by `NetworkEvents`, whose methods
return once what they were told is durable; until then the network has to keep it and tell it again. Told
twice, late or out of order it does no harm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from callcontrol.messaging.models import ChatMessage, MessageType

__all__ = [
    "InboundMessage",
    "MessagingNetwork",
    "NetworkEvents",
    "NetworkRefused",
    "NetworkUnavailable",
    "Outgoing",
    "Receipt",
    "ReceiptStatus",
    "UnderWay",
]

ReceiptStatus = Literal["sent", "delivered", "read", "failed"]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message as a network is given it; ``content`` is that of ``ChatMessage``, with its text."""

    message_id: str
    sender: str
    to: str
    type: MessageType
    content: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a message, and when; ``error_code`` and ``error_message`` say why one failed."""

    message_id: str
    status: ReceiptStatus
    at: datetime
    network_ref: str | None = None
    error_code: str | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A message that the network took in an earlier run of this process, and what is known of it."""

    message_id: str
    to: str
    status: ReceiptStatus
    sent_at: datetime
    network_ref: str | None = None


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """
    A message that somebody wrote to a channel's number.

    ``reference`` is the network's name of it: one that is told of again under the same is kept once.
    """

    reference: str
    from_: str
    to: str
    type: MessageType
    content: Mapping[str, Any] = field(repr=False)
    at: datetime = field(kw_only=True)


class NetworkRefused(Exception):
    """The network has judged the message and will never take it; ``code`` is one of ours or the network's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class NetworkUnavailable(Exception):
    """The network did not answer, or has too much to do; whether it took the message is not known."""


class NetworkEvents(Protocol):
    """Who hears from a network; what is told is durable when a method returns."""

    async def receipts(self, receipts: Sequence[Receipt]) -> None:
        """
        What became of messages, some hundred at once at most.

        Raises:
            ServiceUnavailable: Nothing of it is kept; tell it again later.
        """

    async def inbound(self, account_sid: str, message: InboundMessage) -> ChatMessage:
        """
        Somebody wrote to the channel of an account; the message as it is kept.

        Raises:
            ServiceUnavailable: It is not kept; tell it again later.
        """


class MessagingNetwork(Protocol):
    """A messaging network; none of its methods waits for ever."""

    async def start(self, events: NetworkEvents) -> None:
        """Begin to tell what happens."""

    async def send(self, message: Outgoing) -> str:
        """
        Hand a message over; returns the network's reference of it.

        Raises:
            NetworkRefused: The message is not taken, and will not be however often it is sent.
            NetworkUnavailable: Send it again later, under the same reference.
        """

    async def recheck(self, messages: Sequence[UnderWay]) -> None:
        """
        Tell again what became of messages since; what is not known of them comes by `NetworkEvents`.

        Raises:
            NetworkUnavailable: Ask again later.
        """

    async def close(self) -> None:
        """Stop; what was not told is told when it is asked for at the next start."""
