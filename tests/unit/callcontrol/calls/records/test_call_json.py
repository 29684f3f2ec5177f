"""The call as interfaces show it."""

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone

import pytest

from callcontrol.calls.records.call_json import call_object
from callcontrol.clock import timestamp
from callcontrol.models import CallRecord, CallStatus, Quality, StreamInfo

CREATED = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)

# The call object's members, in the order the interface lists them.
MEMBERS = """
call_sid sid account_sid parent_call_sid direction from to status answered_by carrier_sid phone_number_id
app_sid stream created_at ringing_at answered_at ended_at duration_sec bill_duration_sec hangup_cause
hangup_cause_code hangup_source sip_status sip_reason sip_call_id sip price currency recording_url
recording_status quality tag
""".split()

# What a record holds for the server alone.
INTERNAL = {
    "product",
    "details",
    "gateway_sid",
    "recording_path",
    "status_webhook_url",
    "status_webhook_events",
    "sequence",
    "node",
    "dialogs",
}


def record() -> CallRecord:
    return CallRecord(
        call_sid="call-1",
        account_sid="acc-1",
        direction="outbound",
        from_="+911140000001",
        to="+919800000001",
        created_at=CREATED,
    )


def test_a_new_call_has_every_member() -> None:
    shown = call_object(record())
    assert list(shown) == MEMBERS
    given = {
        "call_sid": "call-1",
        "sid": "call-1",
        "account_sid": "acc-1",
        "direction": "outbound",
        "from": "+911140000001",
        "to": "+919800000001",
        "status": "queued",
        "created_at": "2026-03-01T12:00:00.123Z",
        "currency": "INR",
    }
    assert {name: value for name, value in shown.items() if value is not None} == given


def test_every_field_of_a_record_is_shown_or_internal() -> None:
    shown = {"from_": "from", "price_paise": "price"}
    names = {shown.get(field.name, field.name) for field in fields(CallRecord)}
    assert names - INTERNAL == set(MEMBERS) - {"sid"}


def test_an_ended_call() -> None:
    call = record()
    call.status = CallStatus.COMPLETED
    call.stream = StreamInfo(stream_sid="s-1", stream_url="wss://bot.example.com/", state="stopped")
    call.quality = Quality(mos=4.2, jitter_ms=1.5, packet_loss_pct=0.0, codec="PCMU")
    call.ringing_at, call.answered_at, call.ended_at = (
        CREATED + timedelta(seconds=offset_s) for offset_s in (1, 2, 63)
    )
    call.price_paise = 12_050
    shown = call_object(call)
    assert shown["status"] == "completed"
    assert shown["stream"] == {
        "stream_sid": "s-1",
        "stream_url": "wss://bot.example.com/",
        "protocol": "exotel",
        "encoding": "l16",
        "sample_rate": 8000,
        "state": "stopped",
    }
    measured = {"mos": 4.2, "jitter_ms": 1.5, "packet_loss_pct": 0.0, "codec": "PCMU"}
    assert shown["quality"] == {**measured, "encrypted": False, "legs": []}
    assert shown["ended_at"] == "2026-03-01T12:01:03.123Z"
    assert shown["price"] == 120.5
    assert json.loads(json.dumps(shown)) == shown


def test_a_free_call_has_a_price_of_nothing() -> None:
    call = record()
    call.price_paise = 0
    assert call_object(call)["price"] == 0
    assert call_object(call)["price"] is not None


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, None),
        (CREATED, "2026-03-01T12:00:00.123Z"),
        (CREATED.replace(microsecond=0), "2026-03-01T12:00:00.000Z"),
        (CREATED.replace(microsecond=999_999), "2026-03-01T12:00:00.999Z"),
        (CREATED.astimezone(timezone(timedelta(hours=5, minutes=30))), "2026-03-01T12:00:00.123Z"),
    ],
)
def test_moments_are_shown_in_utc(moment: datetime | None, text: str | None) -> None:
    assert timestamp(moment) == text
