"""Events of a messaging network: applied to messages in batches, and published to subscribers."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from typing import Final
from uuid import UUID, uuid5

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.writer import Writer
from callcontrol.messaging.events import message_received, message_status_event
from callcontrol.messaging.models import ChatMessage, MessageStatus
from callcontrol.messaging.network import InboundMessage, Receipt
from callcontrol.messaging.receipts import preference
from callcontrol.messaging.store import contacts
from callcontrol.messaging.store import messages as chat_messages
from callcontrol.models import SubscribedEvent
from callcontrol.webhooks.aio.outbox import Outbox
from callcontrol.webhooks.store import publish as fan_out

_INBOUND: Final = UUID("5d1c6c1f-0f0a-4e0c-9a3c-9f2f4f8f6c11")
"""Namespace of the ids of inbound messages: a message reported twice has one id."""

CampaignsMoved = Callable[[Connection, set[int], datetime], bool]
"""Called in the transaction with the campaigns whose messages changed; True if it published events."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The number of messages that came to each state, and True if events were published."""

    counts: Counter[MessageStatus]
    published: bool


class Receiver:
    """
    Stores the outcomes of messages and inbound messages; a ``NetworkEvents``.

    Attributes:
        counts: The number of messages that have come to each state since this process started.
    """

    def __init__(self, writer: Writer, outbox: Outbox, campaigns_moved: CampaignsMoved) -> None:
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
        self.settled(await self._writer.commit(self.applying(receipts), continues=True))

    async def inbound(self, account_sid: str, message: InboundMessage) -> ChatMessage:
        """
        Store an inbound message, durably, and opt its sender out or in if its text asks for that.

        Raises:
            ServiceUnavailable: The database is failing; the message is not stored.
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
        self.settled(await self._writer.commit(partial(_keep, message=kept), continues=True))
        return kept

    def applying(self, receipts: Sequence[Receipt]) -> Callable[[Connection], Applied]:
        """An operation that applies receipts; hand its result to ``settled``."""
        return partial(_apply, receipts, utc_now(), self._campaigns_moved)

    def settled(self, applied: Applied) -> None:
        """Handle the commit of an operation of ``applying``: count it, and wake the outbox."""
        self.counts += applied.counts
        if applied.published:
            self._outbox.changed()


def _apply(
    receipts: Sequence[Receipt], now: datetime, campaigns_moved: CampaignsMoved, connection: Connection
) -> Applied:
    moved = chat_messages.apply(connection, receipts)
    events: list[SubscribedEvent] = []
    counts: Counter[MessageStatus] = Counter()
    # Making events takes longer than updating messages, and most accounts have no subscriber.
    listening = cache(partial(fan_out.has_listeners, connection, service="messaging"))
    for each in moved:
        counts.update(each.passed)
        # Nor does the customer who cancelled a campaign need an event for each of its messages.
        if each.row["error_code"] != chat_messages.CANCELLED and listening(each.row["account_sid"]):
            events += _status_events(chat_messages.message_of(connection, each.row), each.passed, now)
    published = fan_out.publish(connection, events) > 0
    campaign_ids = {each.row["campaign_id"] for each in moved if each.row["campaign_id"] is not None}
    if campaign_ids:
        published = campaigns_moved(connection, campaign_ids, now) or published
    return Applied(counts, published)


def _status_events(
    message: ChatMessage, passed: Sequence[MessageStatus], now: datetime
) -> Iterator[SubscribedEvent]:
    """The events of the states that a message has passed."""
    for state in passed:
        event = message_status_event(replace(message, status=state), now)
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
