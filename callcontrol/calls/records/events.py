"""Events of a call for its status webhook; calls of a product have events of their own."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from callcontrol.calls.records.call_json import call_object
from callcontrol.clock import timestamp
from callcontrol.masking.calls import PRODUCT as MASKING
from callcontrol.masking.calls import masked_event, masked_object
from callcontrol.models import CallRecord, WebhookEvent
from callcontrol.otp.calls import PRODUCT as OTP
from callcontrol.otp.calls import otp_event, otp_object

_CHOSEN: Final = frozenset(
    {"call.initiated", "call.ringing", "call.early-media", "call.answered", "call.completed"}
)
"""Events that ``status_webhook_events`` can select; all others are always sent."""

NameEvent = Callable[[CallRecord, str], str | None]
ShowCall = Callable[[CallRecord], dict[str, Any]]


def _plain_event(record: CallRecord, event: str) -> str | None:
    if event in _CHOSEN and event.removeprefix("call.") not in record.status_webhook_events:
        return None
    return event


_SHAPES: Final[Mapping[str | None, tuple[NameEvent, ShowCall]]] = {
    None: (_plain_event, call_object),
    OTP: (otp_event, otp_object),
    MASKING: (masked_event, masked_object),
}
"""By product: name of an event (None for an event that is not sent), and JSON form of the call."""


def show_call(record: CallRecord) -> dict[str, Any]:
    """Return the call as shown in its events; its product decides which fields they contain."""
    _, show = _SHAPES.get(record.product, _SHAPES[None])
    return show(record)


def call_event(
    record: CallRecord,
    event: str,
    details: Mapping[str, Any],
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
    name_of, show = _SHAPES.get(record.product, _SHAPES[None])
    name = name_of(record, event)
    if name is None:
        return None
    record.sequence += 1
    body = {
        "event": name,
        "event_id": event_id,
        "timestamp": timestamp(at),
        "sequence": record.sequence,
        "data": {**(show(record) if shown is None else shown), **details},
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
