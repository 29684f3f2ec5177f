"""What a messaging network tells: applied to messages in batches, and told on to subscribers."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from typing import Final, Protocol
from uuid import UUID, uuid5

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.writer import Writer
from callcontrol.messaging.events import message_received, message_told
from callcontrol.messaging.inbound import preference
from callcontrol.messaging.models import ChatMessage, MessageStatus
from callcontrol.messaging.network import InboundMessage, Receipt
from callcontrol.messaging.store import contacts
from callcontrol.messaging.store import messages as chat_messages
from callcontrol.models import Broadcast
from callcontrol.webhooks.store import publish as fan_out

__all__ = ["Applied", "CampaignsMoved", "Notified", "Receiver"]

_INBOUND: Final = UUID("5d1c6c1f-0f0a-4e0c-9a3c-9f2f4f8f6c11")
"""What the ids of inbound messages are made in: one that is told of twice has one id."""

CampaignsMoved = Callable[[Connection, set[int], datetime], bool]
"""Told, in its transaction, of which campaigns messages have moved; whether it published anything."""


class Notified(Protocol):
    """What messages need of the outbox."""

    def changed(self) -> None:
        """Events were published: deliver them."""


@dataclass(frozen=True, slots=True)
class Applied:
    """How many messages came to each state, and whether anybody is to be told of it."""

    counts: Counter[MessageStatus]
    published: bool


class Receiver:
    """
    Takes in what became of messages and what was written to accounts; a ``NetworkEvents``.

    Attributes:
        counts: How many messages have come to each state since this process started.
    """

    def __init__(self, writer: Writer, outbox: Notified, campaigns_moved: CampaignsMoved) -> None:
        self._writer = writer
        self._outbox = outbox
        self._campaigns_moved = campaigns_moved
        self.counts: Counter[MessageStatus] = Counter()

    async def receipts(self, receipts: Sequence[Receipt]) -> None:
        """
        Apply receipts, durably.

        Raises:
            ServiceUnavailable: The database is failing; nothing is kept.
        """
        self.settled(await self._writer.commit(self.applying(receipts), begun=True))

    async def inbound(self, account_sid: str, message: InboundMessage) -> ChatMessage:
        """
        Keep what somebody wrote to an account, durably, and do what the words of it ask for.

        Raises:
            ServiceUnavailable: The database is failing; it is not kept.
        """
        kept = ChatMessage(
            message_id=str(uuid5(_INBOUND, f"{account_sid}/{message.reference}")),
            account_sid=account_sid,
            direction="inbound",
            from_=message.from_,
            to=message.to,
            type=message.type,
            content=message.content,
            status="received",
            created_at=message.at,
            due_at=message.at,
            network_ref=message.reference,
        )
        self.settled(await self._writer.commit(partial(_keep, message=kept), begun=True))
        return kept

    def applying(self, receipts: Sequence[Receipt]) -> Callable[[Connection], Applied]:
        """An operation that applies receipts; ``settled`` is told of its result."""
        return partial(_apply, receipts, utc_now(), self._campaigns_moved)

    def settled(self, applied: Applied) -> None:
        """An operation of ``applying`` is committed."""
        self.counts += applied.counts
        if applied.published:
            self._outbox.changed()


def _apply(
    receipts: Sequence[Receipt], now: datetime, campaigns_moved: CampaignsMoved, connection: Connection
) -> Applied:
    moved = chat_messages.apply(connection, receipts)
    events: list[Broadcast] = []
    counts: Counter[MessageStatus] = Counter()
    # Making events takes longer than moving messages, and most accounts have nobody to tell.
    listening = cache(partial(fan_out.has_listeners, connection, service="messaging"))
    for each in moved:
        counts.update(each.passed)
        # Nor need who cancelled a campaign be told of each of its messages.
        if each.row["error_code"] != chat_messages.CANCELLED and listening(each.row["account_sid"]):
            events += _told(each, now)
    published = fan_out.publish(connection, events) > 0
    campaign_ids = {each.row["campaign_id"] for each in moved if each.row["campaign_id"] is not None}
    if campaign_ids:
        published = campaigns_moved(connection, campaign_ids, now) or published
    return Applied(counts, published)


def _told(moved: chat_messages.Moved, now: datetime) -> Iterator[Broadcast]:
    """The events of the states that a message has passed."""
    message = moved.message
    for state in moved.passed:
        event = message_told(replace(message, status=state), now)
        if event is not None:
            yield event


def _keep(connection: Connection, message: ChatMessage) -> Applied:
    if chat_messages.get(connection, message.message_id) is not None:
        return Applied(Counter[MessageStatus](), False)
    chat_messages.insert_many(connection, [message])
    wants = preference(message.content.get("text"))
    if wants is not None:
        contacts.set_opted_out(connection, message.account_sid, message.from_, not wants, message.created_at)
    events = [message_received(message, message.created_at)]
    return Applied(Counter[MessageStatus]({"received": 1}), fan_out.publish(connection, events) > 0)
