"""Events of a call for its status webhook; calls of a product have events of their own."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from callcontrol.calls.product import ProductPolicy
from callcontrol.clock import timestamp
from callcontrol.models import CallRecord, WebhookEvent


def call_event(
    record: CallRecord,
    event: str,
    details: Mapping[str, Any],
    policy: ProductPolicy,
    *,
    event_id: str,
    at: datetime,
    shown: Mapping[str, Any] | None = None,
) -> WebhookEvent | None:
    """
    Return an event of a call for its status webhook, None when nobody subscribed to it.

    ``shown`` is the call at the time of the event; None stands for the present record. Increments
    ``record.sequence``: receivers see every number once, without gaps. ``details`` of the record name the
    subscription of a product whose events go to one.
    """
    url = record.status_webhook_url
    if url is None:
        return None
    name = policy.event_name(record, event)
    if name is None:
        return None
    record.sequence += 1
    body = {
        "event": name,
        "event_id": event_id,
        "timestamp": timestamp(at),
        "sequence": record.sequence,
        "data": {**(policy.shape(record) if shown is None else shown), **details},
    }
    return WebhookEvent(
        event_id=event_id,
        account_sid=record.account_sid,
        event=name,
        url=url,
        body=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"),
        created_at=at,
        call_sid=record.call_sid,
        subscription_id=(record.details or {}).get("subscription_id"),
    )
