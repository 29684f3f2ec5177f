"""Messages, as the routes use them."""

from __future__ import annotations

from typing import Protocol

from callcontrol.messaging.messages import SendMessage
from callcontrol.messaging.models import ChatMessage
from callcontrol.messaging.store.messages import MessageFilter
from callcontrol.models import Page

__all__ = ["Messages"]


class Messages(Protocol):
    """Messages of accounts; see ``callcontrol.messaging.aio.messages.MessageService``."""

    async def send(self, account_sid: str, request: SendMessage) -> ChatMessage:
        """Send one message; it is stored durably before it is submitted to the network."""

    async def get(self, account_sid: str, message_id: str) -> ChatMessage:
        """One message, in either direction."""

    async def list(
        self, account_sid: str, query: MessageFilter, page: int, per_page: int
    ) -> Page[ChatMessage]:
        """Messages of the account, newest first."""

    async def simulate(self, account_sid: str, from_: str, text: str) -> ChatMessage:
        """Store a simulated inbound message to the account's channel."""
