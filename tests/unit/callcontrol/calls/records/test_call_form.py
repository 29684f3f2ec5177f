"""Status callbacks of calls that Twilio's clients place: which events, and their fields."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import parse_qsl

import pytest

from callcontrol.calls.product import NO_PRODUCT
from callcontrol.calls.records.call_form import STATUS_FORMAT
from callcontrol.egress.requests import form_signature, signed_headers
from callcontrol.models import CallRecord, CallStatus, RecordingStatus, WebhookEvent
from tests.support.domain import ACCOUNT_SID, CALL_SID, make_ringing

NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
URL = "https://shop.example/status?shop=7"
SECRET = "whsec_WW91ciBvd24gMzIgcmFuZG9tIGJ5dGVzLCBwbGVhc2U="


def placed(**fields: object) -> CallRecord:
    known = {"direction": "outbound", "status_webhook_url": URL, "details": {STATUS_FORMAT: "form"}}
    events = ("initiated", "answered", "completed")
    return make_ringing(**{**known, "status_webhook_events": events, **fields})


def event_of(record: CallRecord, name: str) -> WebhookEvent | None:
    return NO_PRODUCT.webhook_event(record, name, {"reason": "x"}, event_id="e", at=NOW)


def fields_of(record: CallRecord, name: str) -> dict[str, str]:
    event = event_of(record, name)
    assert event is not None
    return dict(parse_qsl(event.body.decode(), strict_parsing=True))


def test_an_event_has_the_fields_that_servers_know() -> None:
    record = placed()
    assert fields_of(record, "call.initiated") == {
        "CallSid": CALL_SID,
        "AccountSid": ACCOUNT_SID,
        "From": record.from_,
        "To": record.to,
        "Caller": record.from_,
        "Called": record.to,
        "CallStatus": "initiated",
        "Direction": "outbound-api",
        "ApiVersion": "2010-04-01",
        "CallbackSource": "call-progress-events",
        "SequenceNumber": "0",
        "Timestamp": "Sun, 22 Nov 2026 03:00:00 +0000",
    }
    answered = fields_of(record, "call.answered")
    assert (answered["CallStatus"], answered["SequenceNumber"]) == ("in-progress", "1")


def test_the_last_event_tells_how_the_call_ended() -> None:
    record = placed(status=CallStatus.BUSY, duration_sec=0, sip_status=486)
    last = fields_of(record, "call.completed")
    assert (last["CallStatus"], last["CallDuration"], last["SipResponseCode"]) == ("busy", "0", "486")
    assert "RecordingUrl" not in last


@pytest.mark.parametrize("status", ["in-progress", "paused", "completed"])
def test_the_last_event_names_the_recording_also_before_it_is_complete(status: RecordingStatus) -> None:
    address = f"/recordings/{CALL_SID}.wav"
    record = placed(
        status=CallStatus.COMPLETED,
        recording_status=status,
        recording_url=address if status == "completed" else None,
    )
    assert fields_of(record, "call.completed")["RecordingUrl"] == address
    assert "RecordingUrl" not in fields_of(record, "call.answered")
    failed = placed(status=CallStatus.COMPLETED, recording_status="failed")
    assert "RecordingUrl" not in fields_of(failed, "call.completed")


@pytest.mark.parametrize("name", ["call.ringing", "webhook.failed", "call.recording.ready"])
def test_events_that_are_not_chosen_or_have_no_form_are_not_sent(name: str) -> None:
    record = placed()
    assert event_of(record, name) is None and record.sequence == 0
    assert event_of(placed(details=None), "webhook.failed") is not None


def test_a_form_is_signed_as_servers_check_it() -> None:
    event = event_of(placed(), "call.initiated")
    assert event is not None
    headers = signed_headers(event, [SECRET], 1, "stream-secret")
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    fields = dict(parse_qsl(event.body.decode()))
    assert headers["X-Twilio-Signature"] == form_signature("stream-secret", URL, fields)
    assert "X-Twilio-Signature" not in signed_headers(event, [SECRET], 1)
    json = event_of(placed(details=None), "call.initiated")
    assert json is not None
    plain = signed_headers(json, [SECRET], 1, "stream-secret")
    assert plain["Content-Type"] == "application/json" and "X-Twilio-Signature" not in plain
