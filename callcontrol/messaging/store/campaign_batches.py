"""Turns recipients of a campaign into messages, in the transaction that records it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from sqlalchemy.engine import Connection

from callcontrol.messaging.campaigns import Campaign, batch_size
from callcontrol.messaging.events import message_status_event
from callcontrol.messaging.models import ChatMessage
from callcontrol.messaging.store import campaigns, channels
from callcontrol.messaging.store import messages as chat_messages
from callcontrol.messaging.store.send_checks import Reason, send_refusals
from callcontrol.webhooks.store import publish as fan_out


def make_batch(
    connection: Connection, campaign_id: int, now: datetime, default_rate: int, new_id: Callable[[], str]
) -> tuple[int, bool]:
    """
    Create messages for the next recipients of a due campaign.

    Returns their number, and True if events were published.

    A recipient that may not be sent to any more gets a failed message, with the reason.
    """
    campaign = campaigns.get(connection, campaign_id)
    if campaign is None or not campaign.state.is_open or campaign.made >= campaign.total:
        return 0, False
    channel = channels.channel_of(connection, campaign.account_sid, default_rate=default_rate)
    size = batch_size(campaigns.queued(connection, campaign_id), channel.messages_per_second)
    if size == 0:
        return 0, False
    recipients = campaigns.take(connection, campaign, size, now)
    wanted = [_message(campaign, channel.number, new_id(), to, now) for to in recipients]
    reasons = send_refusals(connection, wanted)
    made = [_with_refusal(message, reasons.get(message.message_id), now) for message in wanted]
    chat_messages.insert_many(connection, made)
    events = [event for message in made if (event := message_status_event(message, now)) is not None]
    fan_out.publish(connection, events)
    settled = campaigns.moved(connection, [campaign_id], now)
    return len(made), bool(events) or settled


def _message(campaign: Campaign, sender: str, message_id: str, to: str, now: datetime) -> ChatMessage:
    template = {
        "name": campaign.template_name,
        "language": campaign.language,
        "bodyParameters": list(campaign.body_parameters),
    }
    return ChatMessage(
        message_id=message_id,
        account_sid=campaign.account_sid,
        direction="outbound",
        from_=sender,
        to=to,
        type="template",
        content={"template": template},
        status="queued",
        created_at=now,
        due_at=now,
        campaign_id=campaign.campaign_id,
    )


def _with_refusal(message: ChatMessage, reason: Reason | None, now: datetime) -> ChatMessage:
    if reason is None:
        return message
    return replace(message, status="failed", failed_at=now, error_code=reason[0], error_message=reason[1])
