"""The events of a call as its status webhook gets them."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from callcontrol.call_object import call_object, timestamp
from callcontrol.models import CallRecord, WebhookEvent

_CHOSEN: Final = frozenset(
    {"call.initiated", "call.ringing", "call.early-media", "call.answered", "call.completed"}
)
"""Events that ``status_webhook_events`` chooses from; all others are sent whenever they happen."""


def call_event(
    record: CallRecord, event: str, details: Mapping[str, Any], *, event_id: str, at: datetime
) -> WebhookEvent | None:
    """
    An event of a call for its status webhook, None when nobody wants it.

    Counts ``record.sequence`` up: receivers see every number once, and none is left out.
    """
    url = record.status_webhook_url
    if url is None:
        return None
    if event in _CHOSEN and event.removeprefix("call.") not in record.status_webhook_events:
        return None
    record.sequence += 1
    body = {
        "event": event,
        "event_id": event_id,
        "timestamp": timestamp(at),
        "sequence": record.sequence,
        "data": {**call_object(record), **details},
    }
    return WebhookEvent(
        event_id=event_id,
        account_sid=record.account_sid,
        event=event,
        url=url,
        body=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"),
        created_at=at,
        call_sid=record.call_sid,
    )
