"""Campaigns of an account, for tests that need some."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.tables.chat import chat_messages as messages
from callcontrol.messaging.aio.campaigns import CampaignRequest
from callcontrol.messaging.models import ChatMessage, Template
from callcontrol.messaging.network import Receipt, ReceiptStatus
from callcontrol.messaging.store import campaigns, templates
from callcontrol.messaging.store import messages as chat_messages
from callcontrol.messaging.store.send_checks import send_refusals


def numbers(count: int) -> list[str]:
    """So many numbers of recipients."""
    return [f"+9198001{number:05d}" for number in range(count)]


def request(count: int = 3, **fields: Any) -> CampaignRequest:
    """A campaign with the template that `approve` makes."""
    values = {"name": "Diwali", "template_name": "offer", "phone_numbers": numbers(count), **fields}
    return CampaignRequest(**{"variables": {"1": "Asha", "2": "10 %"}, **values})


async def approve(storage: Storage, account_sid: str, name: str = "offer") -> Template:
    """An approved template with two variables."""
    now = utc_now()
    template = Template(
        template_id=0,
        account_sid=account_sid,
        name=name,
        language="en_US",
        category="MARKETING",
        body="Dear {{1}}, {{2}} off.",
        variables=2,
        status="APPROVED",
        created_at=now,
        updated_at=now,
        reference=new_id(),
    )
    made = await storage.writer.commit(
        lambda connection: templates.insert(connection, template, now + timedelta(days=1))
    )
    assert made is not None
    return made


async def messages_of(storage: Storage, campaign_id: int) -> list[ChatMessage]:
    """The messages that a campaign has, by their recipients."""
    return await storage.database.read(lambda connection: _messages_of(connection, campaign_id))


def _messages_of(connection: Connection, campaign_id: int) -> list[ChatMessage]:
    rows = connection.execute(
        messages.select().where(messages.c.campaign_id == campaign_id).order_by(messages.c.to_number)
    )
    return [chat_messages.message_of(connection, row) for row in rows]


async def receive(storage: Storage, told: Sequence[ChatMessage], status: ReceiptStatus, at: datetime) -> bool:
    """Do what is done when the network tells of messages; whether campaigns were completed by it."""
    error = ("UNDELIVERABLE", "Nobody there.") if status == "failed" else (None, None)
    receipts = [Receipt(message.message_id, status, at, None, *error) for message in told]

    def write(connection: Connection) -> bool:
        moved = chat_messages.apply(connection, receipts)
        touched = {each.row["campaign_id"] for each in moved}
        return campaigns.moved(connection, [found for found in touched if found is not None], at)

    return await storage.writer.commit(write)


async def held(storage: Storage, claimed: Sequence[ChatMessage]) -> dict[str, str]:
    """The codes of what must not be sent."""
    reasons = await storage.writer.commit(lambda connection: send_refusals(connection, claimed))
    return {message_id: code for message_id, (code, _) in reasons.items()}
