"""The messaging service over a database, before a network that does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.messaging.aio.dispatcher import Dispatcher, DispatcherSettings
from callcontrol.messaging.aio.messages import MessageService
from callcontrol.messaging.aio.receiving import Receiver
from callcontrol.messaging.models import ChatMessage, MessageStatus
from callcontrol.messaging.network import MessagingNetwork, NetworkEvents
from callcontrol.messaging.store import campaigns

PATIENCE_S = 40.0


@dataclass
class ScriptedNetwork:
    """Takes everything, unless an answer is laid ready; remembers what it was asked."""

    sent: list[str] = field(default_factory=list)
    rechecked: list[str] = field(default_factory=list)
    answers: dict[str, list[Exception]] = field(default_factory=dict)
    events: NetworkEvents | None = None
    stuck: asyncio.Event | None = None

    async def start(self, events: NetworkEvents) -> None:
        self.events = events

    async def send(self, message: ChatMessage) -> str:
        self.sent.append(message.message_id)
        if self.stuck is not None:
            await self.stuck.wait()
        if self.answers.get(message.to):
            raise self.answers[message.to].pop(0)
        return f"net-{message.message_id}"

    async def recheck(self, messages: Sequence[ChatMessage]) -> None:
        self.rechecked += [message.message_id for message in messages]

    async def close(self) -> None:
        pass


@dataclass
class MessagingStage:
    """The parts of one process."""

    storage: Storage
    network: MessagingNetwork
    settings: DispatcherSettings
    rate: int = 1000

    def __post_init__(self) -> None:
        storage = self.storage
        self.receiver = Receiver(storage.writer, storage.outbox, campaigns.moved)
        self.dispatcher = Dispatcher(
            storage.database,
            storage.writer,
            self.network,
            self.receiver,
            lambda connection, account_sid: self.rate,
            self.settings,
        )
        self.messages = MessageService(
            storage.database,
            storage.writer,
            self.dispatcher,
            self.receiver,
            storage.destinations,
            self.rate,
        )

    async def when(self, account_sid: str, message_id: str, *statuses: MessageStatus) -> ChatMessage:
        """The message once it has one of the states."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.messages.get(account_sid, message_id)
                if found.status in statuses:
                    return found
                await asyncio.sleep(0.02)


@asynccontextmanager
async def messaging(
    storage: Storage,
    network: MessagingNetwork,
    settings: DispatcherSettings | None = None,
    *,
    rate: int = 1000,
) -> AsyncIterator[MessagingStage]:
    """Run the service of one process."""
    stage = MessagingStage(storage, network, settings or DispatcherSettings(poll_s=0.2), rate)
    await stage.dispatcher.start()
    try:
        yield stage
    finally:
        await stage.dispatcher.close()


def queued(account_sid: str, to: str = "+919800100000", *, campaign_id: int | None = None) -> ChatMessage:
    """A message that waits for the network."""
    now = utc_now()
    return ChatMessage(
        message_id=new_id(),
        account_sid=account_sid,
        direction="outbound",
        from_="+918001100000",
        to=to,
        type="text",
        content={"text": "Your parcel is here."},
        status="queued",
        created_at=now,
        due_at=now,
        campaign_id=campaign_id,
    )
