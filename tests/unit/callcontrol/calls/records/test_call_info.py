"""Requests and events in the form of jambonz: their fields, and the signature that its clients check."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from callcontrol.calls.product import NO_PRODUCT
from callcontrol.calls.records.call_form import STATUS_FORMAT, Fact
from callcontrol.calls.records.call_info import CUSTOMER_DATA, call_info, info_body, request_info
from callcontrol.egress.requests import signed_headers
from callcontrol.models import CallRecord, CallStatus, WebhookEvent
from tests.support.domain import ACCOUNT_SID, CALL_SID, make_ringing

NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
SECRETS = ("whsec_WW91ciBvd24gMzIgcmFuZG9tIGJ5dGVzLCBwbGVhc2U=", "whsec_b2xkZXIgc2VjcmV0")


def placed(**fields: Any) -> CallRecord:
    events = ("initiated", "ringing", "early-media", "answered", "completed")
    known = {"status_webhook_url": "https://shop.example/status", "status_webhook_events": events}
    return make_ringing(**{"direction": "outbound", "details": {STATUS_FORMAT: "jambonz"}, **known, **fields})


def event_of(record: CallRecord, name: str) -> dict[str, Any] | None:
    event = NO_PRODUCT.webhook_event(record, name, {"reason": "x"}, event_id="e", at=NOW)
    return None if event is None else json.loads(event.body)


def results(*facts: tuple[str, Fact]) -> dict[str, Any]:
    record = placed(status=CallStatus.IN_PROGRESS)
    told = request_info(record, facts, caller_name=None, is_new=False)
    return {name: value for name, value in told.items() if name not in call_info(record)}


def refused(message_id: str | None, code: str) -> tuple[tuple[str, Fact], ...]:
    """The facts of a message that was not accepted."""
    error = (("message_error_code", code), ("message_error", "why"))
    return (("message_status", "failed"), ("message_id", message_id), *error)


def test_a_new_call_is_shown_with_its_caller_and_headers() -> None:
    record = make_ringing(sip={"headers": {"X-Campaign": "autumn"}}, sip_call_id="abc@carrier")
    told = request_info(record, (), caller_name="Anita", is_new=True)
    assert told == {
        "call_sid": CALL_SID,
        "direction": "inbound",
        "from": record.from_,
        "to": record.to,
        "call_id": "abc@carrier",
        "call_status": "trying",
        "sip_status": 100,
        "sip_reason": "Trying",
        "account_sid": ACCOUNT_SID,
        "application_sid": None,
        "caller_name": "Anita",
        "sip": {"headers": {"X-Campaign": "autumn"}},
    }


def test_the_data_of_a_tag_are_in_every_request() -> None:
    record = placed(details={CUSTOMER_DATA: {"order": 7}})
    assert call_info(record)["customerData"] == {"order": 7}


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ((), {}),
        ((("digits", "27"), ("finished_on_key", "#")), {"reason": "dtmfDetected", "digits": "27"}),
        ((("digits", ""), ("finished_on_key", None)), {"reason": "timeout"}),
        ((("min_digits", 3), ("digits", "27"), ("finished_on_key", None)), {"reason": "timeout"}),
        (
            (("min_digits", 3), ("digits", "27"), ("finished_on_key", "#")),
            {"reason": "dtmfDetected", "digits": "27"},
        ),
        (
            (("recognizer_language", "hi-IN"), ("digits", "2"), ("finished_on_key", None))
            + (("speech", "haan"), ("speech_confidence", "0.970")),
            {
                "reason": "speechDetected",
                "speech": {
                    "language_code": "hi-IN",
                    "channel_tag": 1,
                    "is_final": True,
                    "alternatives": [{"confidence": 0.97, "transcript": "haan"}],
                },
            },
        ),
        (
            (("digits", "2"), ("finished_on_key", None), ("speech", ""), ("speech_confidence", None)),
            {"reason": "dtmfDetected", "digits": "2"},
        ),
        (
            (("dial_call_status", "busy"), ("dial_call_duration", 0), ("dial_sip_status", 486)),
            {"dial_call_status": "busy", "dial_sip_status": 486},
        ),
        (
            (("dial_call_status", "canceled"), ("dial_call_duration", 0), ("dial_sip_status", None)),
            {"dial_call_status": "no-answer"},
        ),
        (
            (("refer_status", 202), ("final_referred_call_status", 486)),
            {"refer_status": 202, "final_referred_call_status": 486},
        ),
        ((("failed_url", "https://a.example/"), ("unknown", 1)), {"failed_url": "https://a.example/"}),
        (
            (("digits", ""), ("failed_url", "https://a.example/")),
            {"reason": "timeout", "failed_url": "https://a.example/"},
        ),
        (
            (("message_status", "accepted"), ("message_id", "m-1"), ("message_error", None)),
            {"message_sid": "m-1", "message_status": "success"},
        ),
        (
            refused("m-1", "NOT_ON_NETWORK"),
            {"message_sid": "m-1", "message_status": "failure", "message_failure_reason": "why"},
        ),
        (
            refused(None, "CHANNEL_NOT_CONFIGURED"),
            {"message_sid": "", "message_status": "no carriers", "message_failure_reason": "why"},
        ),
        (
            refused(None, "SERVICE_UNAVAILABLE"),
            {"message_sid": "", "message_status": "system error", "message_failure_reason": "why"},
        ),
    ],
)
def test_the_results_of_a_verb_have_the_names_of_jambonz(
    facts: tuple[tuple[str, Fact], ...], shown: dict[str, Any]
) -> None:
    assert results(*facts) == shown


@pytest.mark.parametrize(
    ("event", "status", "sip_status"),
    [
        ("call.initiated", "trying", 100),
        ("call.ringing", "ringing", 180),
        ("call.early-media", "early-media", 183),
        ("call.answered", "in-progress", 200),
    ],
)
def test_an_event_tells_the_status_of_the_call(event: str, status: str, sip_status: int) -> None:
    told = event_of(placed(), event)
    assert told is not None
    assert (told["call_status"], told["sip_status"], told["call_sid"]) == (status, sip_status, CALL_SID)
    assert not {"duration", "event", "data"} & told.keys()


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        (
            {"status": CallStatus.COMPLETED, "duration_sec": 7, "hangup_source": "callee", "sip_status": 200},
            ("completed", 200, "OK", 7, "caller"),
        ),
        (
            {"status": CallStatus.BUSY, "sip_status": 486, "hangup_source": "carrier"},
            ("busy", 486, "Busy Here", 0, "caller"),
        ),
        (
            {"status": CallStatus.FAILED, "sip_status": 404, "hangup_source": "system"},
            ("failed", 404, "Not Found", 0, "jambonz"),
        ),
        ({"status": CallStatus.CANCELED}, ("no-answer", 487, "Request Terminated", 0, "jambonz")),
    ],
)
def test_the_last_event_tells_how_the_call_ended(
    fields: dict[str, Any], shown: tuple[str, int, str, int, str]
) -> None:
    record = placed(**{"sip_reason": "Busy Here" if fields.get("sip_status") == 486 else None, **fields})
    told = event_of(record, "call.completed")
    assert told is not None
    names = ("call_status", "sip_status", "sip_reason", "duration", "call_termination_by")
    assert tuple(told[name] for name in names) == shown


def test_events_that_jambonz_has_not_are_not_sent() -> None:
    record = placed()
    assert event_of(record, "webhook.failed") is None
    assert record.sequence == 0


def test_a_body_is_the_one_that_javascript_writes_again() -> None:
    assert (
        info_body({"a": 1.0, "b": [2.5, {"c": -3.0}], "d": "é"})
        == '{"a":1,"b":[2.5,{"c":-3}],"d":"é"}'.encode()
    )


def test_every_secret_signs_time_and_body() -> None:
    event = NO_PRODUCT.webhook_event(placed(), "call.answered", {}, event_id="e", at=NOW)
    assert event is not None
    time, *signatures = signed_headers(event, SECRETS, 1_795_000_000)["Jambonz-Signature"].split(",")
    content = b"1795000000." + event.body
    expected = [hmac.digest(secret.encode(), content, hashlib.sha256).hex() for secret in SECRETS]
    assert (time, signatures) == ("t=1795000000", [f"v1={value}" for value in expected])


def test_other_bodies_have_no_such_signature() -> None:
    plain = NO_PRODUCT.webhook_event(placed(details=None), "call.answered", {}, event_id="e", at=NOW)
    assert isinstance(plain, WebhookEvent)
    assert "Jambonz-Signature" not in signed_headers(plain, SECRETS, 1)
