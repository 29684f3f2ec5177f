"""Messaging service: builds its parts, and starts and stops them in order."""

from __future__ import annotations

from functools import partial
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.messaging.aio.dispatcher import Dispatcher, DispatcherSettings
from callcontrol.messaging.aio.messages import MessageService
from callcontrol.messaging.aio.receiving import Receiver
from callcontrol.messaging.network import MessagingNetwork
from callcontrol.messaging.store import campaigns, channels
from callcontrol.messaging.store import queue as chat_queue

__all__ = ["Messaging"]

MOST_COUNTED: Final = 100_000

DEFAULT_RATE: Final = channels.DEFAULT_MESSAGES_PER_SECOND


class Messaging:
    """
    Parts of messaging that run in a server.

    Attributes:
        receiver: Stores receipts and inbound messages of the network.
        dispatcher: Submits messages to the network.
        messages: Service for single messages.
    """

    def __init__(
        self, storage: Storage, network: MessagingNetwork, *, node: str, default_rate: int = DEFAULT_RATE
    ) -> None:
        def rate_of(connection: Connection, account_sid: str) -> int:
            channel = channels.channel_of(connection, account_sid, default_rate=default_rate)
            return channel.messages_per_second

        database, writer = storage.database, storage.writer
        self._campaigns = storage.campaigns
        self._default_rate = default_rate
        self._database = database
        self.receiver = Receiver(writer, storage.outbox, campaigns.moved)
        self.dispatcher = Dispatcher(
            database, writer, network, self.receiver, rate_of, DispatcherSettings(node=node)
        )
        self.messages = MessageService(
            database, writer, self.dispatcher, self.receiver, storage.destinations, default_rate
        )

    async def waiting(self) -> int:
        """Count the messages that wait for the network, up to ``MOST_COUNTED``."""
        return await self._database.read(partial(chat_queue.depth, at_most=MOST_COUNTED))

    async def start(self) -> None:
        """Start to submit waiting messages and to receive events."""
        await self.dispatcher.start()
        self._campaigns.start(self.dispatcher.wake, self._default_rate)

    async def close(self) -> None:
        """Stop; waiting messages stay in the database."""
        await self._campaigns.close()
        await self.dispatcher.close()
