"""Events of messaging: their kinds, their content, and that none is published twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from callcontrol.messaging.campaigns import Campaign, CampaignCounts, CampaignState
from callcontrol.messaging.events import (
    EVENTS,
    campaign_completed,
    message_received,
    message_status_event,
    template_decision_event,
)
from callcontrol.messaging.models import ChatMessage, MessageStatus, Template, TemplateStatus
from callcontrol.models import SubscribedEvent
from tests.support.domain import ACCOUNT_SID, NOW, OTHER_SID

MESSAGE_ID = "55555555-5555-4555-8555-555555555555"
LATER = NOW + timedelta(seconds=3)


def message(**values: Any) -> ChatMessage:
    facts: dict[str, Any] = {
        "direction": "outbound",
        "from_": "+918047000100",
        "to": "+919800100000",
        "type": "text",
        "content": {"text": "Ein Geheimnis"},
        "status": "sent",
        "created_at": NOW,
        "due_at": NOW,
        "sent_at": LATER,
    }
    return ChatMessage(MESSAGE_ID, ACCOUNT_SID, **(facts | values))


def template(status: TemplateStatus, **values: Any) -> Template:
    made = Template(7, ACCOUNT_SID, "sale_now", "en_US", "UTILITY", "Hello", 0, status, NOW, NOW)
    return replace(made, **values)


def told(event: SubscribedEvent | None) -> SubscribedEvent:
    assert event is not None
    assert event.service == "messaging" and event.event in EVENTS.names
    assert event.fields["event"] == event.event and set(event.fields) == {"event", "createdAt", "data"}
    return event


def test_a_message_that_waits_to_be_sent_is_told_to_nobody() -> None:
    assert message_status_event(message(status="queued", sent_at=None), NOW) is None


def test_a_state_of_a_message_is_told_without_what_it_says() -> None:
    event = told(message_status_event(message(campaign_id=12), LATER))
    assert (event.event, event.account_sid, event.created_at) == ("message.sent", ACCOUNT_SID, LATER)
    assert event.fields["data"] == {
        "messageId": MESSAGE_ID,
        "campaignId": 12,
        "from": "+918047000100",
        "to": "+919800100000",
        "type": "text",
        "status": "sent",
        "sentAt": "2026-01-02T03:04:08.000Z",
        "deliveredAt": None,
        "readAt": None,
        "failedAt": None,
        "error": None,
    }
    assert "Geheimnis" not in str(event.fields)


def test_what_failed_says_why() -> None:
    failed = message(status="failed", failed_at=LATER, error_code="EXPIRED", error_message="not in a day")
    event = told(message_status_event(failed, LATER))
    assert event.event == "message.failed"
    assert event.fields["data"]["error"] == {"code": "EXPIRED", "message": "not in a day"}


@pytest.mark.parametrize("status", ["sent", "delivered", "read", "failed"])
def test_each_state_is_told_once_and_in_the_order_of_its_message(status: MessageStatus) -> None:
    """Events of one id are written once, and those of one order go out one after the other."""
    first = told(message_status_event(message(status=status), NOW))
    again = told(message_status_event(message(status=status), LATER))
    assert first.event_id == again.event_id
    assert first.call_sid == MESSAGE_ID


def test_no_two_events_have_one_id() -> None:
    states: tuple[MessageStatus, ...] = ("sent", "delivered", "read", "failed")
    events = [
        *(message_status_event(message(status=status), NOW) for status in states),
        message_received(message(direction="inbound"), NOW),
        template_decision_event(template("APPROVED"), NOW),
        template_decision_event(template("REJECTED"), NOW),
        template_decision_event(template("APPROVED", template_id=8), NOW),
        template_decision_event(template("APPROVED", account_sid=OTHER_SID), NOW),
        _completed(7),
        _completed(8),
    ]
    assert len({told(event).event_id for event in events}) == len(events)


def test_a_message_that_came_in_is_told_with_what_it_says() -> None:
    came = message(direction="inbound", from_="+919800100000", to="+918047000100", content={"text": "STOP"})
    event = told(message_received(came, LATER))
    assert event.event == "message.received"
    assert event.fields["data"] == {
        "messageId": MESSAGE_ID,
        "from": "+919800100000",
        "to": "+918047000100",
        "type": "text",
        "text": "STOP",
        "receivedAt": "2026-01-02T03:04:05.000Z",
    }


@pytest.mark.parametrize("status", ["PENDING", "PAUSED"])
def test_only_a_decision_on_a_template_is_told(status: TemplateStatus) -> None:
    assert template_decision_event(template(status), NOW) is None


def test_a_rejected_template_says_why() -> None:
    event = told(template_decision_event(template("REJECTED", rejection_reason="looks like an advert"), NOW))
    assert event.event == "template.rejected"
    assert event.fields["data"]["rejectionReason"] == "looks like an advert"
    assert event.call_sid is None


def test_a_campaign_that_is_over_says_how_its_messages_ended() -> None:
    event = told(_completed(7))
    assert event.fields["data"] == {
        "campaignId": 7,
        "campaignName": "Spring",
        "templateName": "sale_now",
        "status": "completed",
        "total": 5,
        "counts": {"queued": 0, "sent": 0, "delivered": 0, "read": 3, "failed": 2, "cancelled": 0},
        "startedAt": "2026-01-02T03:04:05.000Z",
        "completedAt": "2026-01-02T03:04:08.000Z",
    }


def _completed(campaign_id: int) -> SubscribedEvent:
    campaign = Campaign(
        reference="ref-1",
        account_sid=ACCOUNT_SID,
        name="Spring",
        template_id=7,
        template_name="sale_now",
        language="en_US",
        body_parameters=(),
        total=5,
        created_at=NOW,
        starts_at=NOW,
        campaign_id=campaign_id,
        state=CampaignState.COMPLETED,
        started_at=NOW,
    )
    return campaign_completed(campaign, CampaignCounts(read=3, failed=2), LATER)
