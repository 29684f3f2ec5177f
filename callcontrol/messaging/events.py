"""
Webhook events of messaging.

An event always has the same id, derived from its name and subject, so that it is published once even if its
transaction is repeated. The events of one message are delivered in the order of its states. Only
``message.received`` contains the text of a message.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final, Literal, get_args
from uuid import UUID, uuid5

from callcontrol.clock import timestamp
from callcontrol.messaging.campaigns import Campaign, CampaignCounts
from callcontrol.messaging.models import ChatMessage, Template
from callcontrol.models import SubscribedEvent
from callcontrol.webhooks.subscriptions import ServiceEvents

MessagingEvent = Literal[
    "message.sent",
    "message.delivered",
    "message.read",
    "message.failed",
    "message.received",
    "template.approved",
    "template.rejected",
    "campaign.completed",
]

EVENTS: Final = ServiceEvents(
    "messaging",
    get_args(MessagingEvent),
    created_at="createdAt",
    numbered=True,
    called="webhook endpoint",
)
"""Events that webhook endpoints subscribe to."""

_EVENT_IDS: Final = UUID("c1f6a0f2-7d0b-4d39-8a11-6a5f0c8d2e97")
"""Namespace of the ids of these events."""

_OF_TEMPLATES: Final = {"APPROVED": "template.approved", "REJECTED": "template.rejected"}


def message_status_event(message: ChatMessage, at: datetime) -> SubscribedEvent | None:
    """The event of the current state of an outbound message; None while it is queued."""
    if message.status == "queued":
        return None
    error = None
    if message.status == "failed":
        error = {"code": message.error_code, "message": message.error_message}
    data = {
        "messageId": message.message_id,
        "campaignId": message.campaign_id,
        "from": message.from_,
        "to": message.to,
        "type": message.type,
        "status": message.status,
        "sentAt": timestamp(message.sent_at),
        "deliveredAt": timestamp(message.delivered_at),
        "readAt": timestamp(message.read_at),
        "failedAt": timestamp(message.failed_at),
        "error": error,
    }
    return _of_message(message, f"message.{message.status}", data, at)


def message_received(message: ChatMessage, at: datetime) -> SubscribedEvent:
    """The event of an inbound message, with its content."""
    data = {
        "messageId": message.message_id,
        "from": message.from_,
        "to": message.to,
        "type": message.type,
        **message.content,
        "receivedAt": timestamp(message.created_at),
    }
    return _of_message(message, "message.received", data, at)


def template_decision_event(template: Template, at: datetime) -> SubscribedEvent | None:
    """The event of the network's decision on a template; None for pending and paused templates."""
    event = _OF_TEMPLATES.get(template.status)
    if event is None:
        return None
    data = {
        "templateId": template.template_id,
        "name": template.name,
        "language": template.language,
        "category": template.category,
        "status": template.status,
        "rejectionReason": template.rejection_reason,
    }
    # A template id is unique per account only: two databases may use the same numbers.
    name = f"{template.account_sid}/template/{template.template_id}/{template.status}"
    return _event(template.account_sid, event, data, name, at)


def campaign_completed(campaign: Campaign, counts: CampaignCounts, at: datetime) -> SubscribedEvent:
    """The event of a campaign that is over; delivered messages may still be read."""
    data = {
        "campaignId": campaign.campaign_id,
        "campaignName": campaign.name,
        "templateName": campaign.template_name,
        "status": campaign.state.status,
        "total": counts.total,
        "counts": asdict(counts),
        "startedAt": timestamp(campaign.started_at),
        "completedAt": timestamp(at),
    }
    event = "campaign.completed"
    name = f"{campaign.account_sid}/campaign/{campaign.campaign_id}/{event}"
    return _event(campaign.account_sid, event, data, name, at)


def _of_message(message: ChatMessage, event: str, data: Mapping[str, Any], at: datetime) -> SubscribedEvent:
    # Events are ordered by call; those of one message are ordered under its id.
    name = f"{message.message_id}/{event}"
    return _event(message.account_sid, event, data, name, at, order=message.message_id)


def _event(
    account_sid: str, event: str, data: Mapping[str, Any], name: str, at: datetime, order: str | None = None
) -> SubscribedEvent:
    event_id = str(uuid5(_EVENT_IDS, name))
    return EVENTS.published(event, data, event_id=event_id, account_sid=account_sid, at=at, order=order)
