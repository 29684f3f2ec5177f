"""The events of a call as its status webhook gets them; calls of a product have events of their own."""

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
"""Events that ``status_webhook_events`` chooses from; all others are sent whenever they happen."""

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
"""By product: what an event of its calls is called, None for one not told, and how the call is shown."""


def show_call(record: CallRecord) -> dict[str, Any]:
    """The call as its events show it: what placed it decides what they may tell."""
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
    An event of a call for its status webhook, None when nobody wants it.

    ``shown`` is the call as it was when the event came about; the record as it is now when None.
    Counts ``record.sequence`` up: receivers see every number once, and none is left out. A product whose
    events go to a subscription names that in its details.
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
