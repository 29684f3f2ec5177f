"""Calls with voice agents as they are shown and told of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from callcontrol.assistant.calls import (
    PRODUCT,
    assistant_details,
    assistant_event,
    assistant_object,
    end_events,
    start_events,
    status_of,
    transcript_url,
)
from callcontrol.assistant.sandbox import confined, is_sandbox, rates_of
from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.charges import Rates
from callcontrol.calls.sandbox import is_test_number
from callcontrol.errors import Forbidden
from callcontrol.models import CallRecord, CallStatus
from callcontrol.models.parties import Party, PhoneTarget, SipTarget
from tests.support.domain import CALLEE, NOW, OWN_NUMBER, make_record

URL = "https://voice.example"


def agent_call(sandbox: str | None = None, **changes: Any) -> CallRecord:
    details = assistant_details(
        "agent-1", language="en-IN", context={"name": "Asha"}, sandbox_carrier=sandbox
    )
    return make_record(product=PRODUCT, details=details, **changes)


def ended(status: CallStatus = CallStatus.COMPLETED, *, answered: bool = True) -> CallRecord:
    return agent_call(
        status=status,
        answered_at=NOW if answered else None,
        ended_at=NOW + timedelta(seconds=9),
        duration_sec=9 if answered else None,
        hangup_cause="NORMAL_CLEARING",
    )


@pytest.mark.parametrize("status", CallStatus)
def test_every_status_has_a_name(status: CallStatus) -> None:
    assert status_of(status, None) != "voicemail"
    assert (status_of(status, "machine") == "voicemail") == (status is CallStatus.COMPLETED)


def test_a_call_is_shown_with_its_agent_and_context() -> None:
    shown = assistant_object(agent_call())
    assert (shown["agent_id"], shown["context"]) == ("agent-1", {"name": "Asha"})
    assert (shown["phone_number"], shown["status"], shown["sandbox"]) == (CALLEE, "queued", False)
    inbound = assistant_object(agent_call(direction="inbound", from_=CALLEE, to=OWN_NUMBER))
    assert inbound["phone_number"] == CALLEE


def test_every_call_that_gets_an_end_is_told_of_when_it_begins() -> None:
    record = agent_call()
    (started,) = start_events(record)
    assert (started.event, started.service, started.created_at) == ("call.started", "assistant", NOW)
    assert (started.fields["data"]["status"], started.fields["data"]["duration_seconds"]) == ("queued", 0)
    assert start_events(record) == [started], "a transaction that is repeated makes no second event"
    assert started.call_sid == end_events(ended(), NOW, URL)[0].call_sid, "both are in one order"
    assert start_events(make_record()) == []


def test_the_end_of_a_call_is_told_once_and_its_transcript_when_there_is_one() -> None:
    record = ended()
    (completed,) = end_events(record, NOW, URL)
    data = completed.fields["data"]
    assert completed.event == "call.completed" and completed.service == "assistant"
    assert (data["status"], data["duration_seconds"]) == ("completed", 9)
    assert data["transcript_url"] == f"{URL}/api/v1/calls/{record.call_sid}/transcript"
    record.details = {**(record.details or {}), "segments": 2}
    assert [event.event for event in end_events(record, NOW, URL)] == ["call.completed", "transcript.ready"]
    again = [event.event_id for event in end_events(record, NOW, URL)]
    assert again == [event.event_id for event in end_events(record, NOW, URL)] and len(set(again)) == 2


def test_a_failure_is_told_before_the_end_unless_it_was_told() -> None:
    record = ended(CallStatus.FAILED, answered=False)
    assert [event.event for event in end_events(record, NOW, URL)] == ["error.occurred", "call.completed"]
    assert assistant_object(record)["error"]["code"] == "NORMAL_CLEARING"
    told = agent_call()
    failed = {"reason": "http_status", "http_status": 503, "attempts": 1}
    event = assistant_event(told, "stream.failed", failed, event_id="1", at=NOW)
    assert event is not None and event.fields["data"]["error"]["code"] == "AGENT_UNREACHABLE"
    told.status, told.ended_at = CallStatus.FAILED, NOW
    assert [item.event for item in end_events(told, NOW, URL)] == ["call.completed"]


@pytest.mark.parametrize(
    ("reason", "code"), [("connect", "AGENT_UNREACHABLE"), ("dropped", "AGENT_DISCONNECTED")]
)
def test_an_agent_that_never_came_is_told_apart_from_one_that_was_lost(reason: str, code: str) -> None:
    answered = agent_call(answered_at=NOW)
    event = assistant_event(answered, "stream.failed", {"reason": reason}, event_id="1", at=NOW)
    assert event is not None and event.fields["data"]["error"]["code"] == code


def test_calls_of_others_and_calls_that_are_up_have_no_end() -> None:
    assert end_events(make_record(status=CallStatus.COMPLETED), NOW, URL) == []
    assert end_events(agent_call(status=CallStatus.IN_PROGRESS), NOW, URL) == []
    assert transcript_url(ended(answered=False), URL) is None


@pytest.mark.parametrize(
    ("name", "told", "event"),
    [
        ("call.answered", {}, "call.answered"),
        ("call.initiated", {}, None),
        ("call.transferred", {"transfer": {"mode": "bridge", "to": CALLEE}}, "call.transferred"),
        ("call.transfer_failed", {"transfer": {"hangup_cause": "USER_BUSY"}}, "error.occurred"),
        ("webhook.failed", {"reason": "timeout"}, "error.occurred"),
        ("call.ringing", {}, None),
        ("call.dtmf", {"digit": "1"}, None),
    ],
)
def test_what_is_told_of_a_call_that_is_up(name: str, told: dict[str, object], event: str | None) -> None:
    made = assistant_event(agent_call(answered_at=NOW), name, told, event_id="1", at=NOW)
    assert (made.event if made else None) == event
    if event == "call.transferred":
        assert made is not None and made.fields["data"]["transferred_to"] == CALLEE
    assert assistant_event(make_record(), name, told, event_id="1", at=NOW) is None


def test_status_webhooks_of_the_platform_keep_their_shape() -> None:
    record = agent_call(status_webhook_url="https://app.example", status_webhook_events=("answered",))
    event = PRODUCTS.of(record).webhook_event(record, "call.answered", {}, event_id="1", at=NOW)
    assert event is not None and event.event == "call.answered" and b'"call_sid"' in event.body


def test_the_sandbox_costs_nothing_and_is_not_left() -> None:
    live, sandbox = agent_call(), agent_call("carrier-1")
    rates = Rates(outbound_paise=60, inbound_paise=40)
    assert rates_of(live, rates) == rates
    assert (rates_of(sandbox, rates).outbound_paise, rates_of(sandbox, rates).inbound_paise) == (0, 0)
    outside = Party(PhoneTarget("+919876543210"), OWN_NUMBER)
    assert confined(live, outside) is outside
    with pytest.raises(Forbidden):
        confined(sandbox, outside)
    with pytest.raises(Forbidden):
        confined(sandbox, Party(SipTarget("x", "192.0.2.1", 5060), OWN_NUMBER))
    inside = confined(sandbox, Party(PhoneTarget("+919800000003"), OWN_NUMBER, carrier_sid="mine"))
    assert inside.carrier_sid == "carrier-1"
    assert not is_sandbox(live) and is_sandbox(sandbox)


@pytest.mark.parametrize(
    ("number", "is_one"),
    [("+919800000001", True), ("+91980000000", False), ("+9198000000011", False), ("+919800001001", False)],
)
def test_test_numbers(number: str, is_one: bool) -> None:
    assert is_test_number(number) is is_one
