"""Missed calls: which they are, and why nobody answered."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.charges import Rates
from callcontrol.calls.hangup_cause import (
    ALLOTTED_TIMEOUT,
    BALANCE_EXHAUSTED,
    CALL_REJECTED,
    CRASH,
    DESTINATION_OUT_OF_ORDER,
    LOSE_RACE,
    NO_ANSWER,
    NO_ROUTE_DESTINATION,
    NO_USER_RESPONSE,
    NORMAL_CLEARING,
    NORMAL_TEMPORARY_FAILURE,
    ORIGINATOR_CANCEL,
    STREAM_DISCONNECTED,
    SYSTEM_SHUTDOWN,
    UNALLOCATED_NUMBER,
    USER_BUSY,
    HangupCause,
)
from callcontrol.calls.records.end import close_record, missed_call, missed_reason
from callcontrol.models import CallRecord, CallStatus
from tests.support.domain import ACCOUNT_SID, CALL_SID, CALLER, NOW, OWN_NUMBER, make_record


def record(cause: HangupCause = NO_ANSWER, *, rang: bool = True, **values: Any) -> CallRecord:
    """An inbound call that rang from its first second on and ended after 21 without an answer."""
    facts: dict[str, Any] = {
        "status": CallStatus.NO_ANSWER,
        "hangup_source": "system",
        "hangup_cause": cause.name,
        "ringing_at": NOW + timedelta(seconds=1) if rang else None,
        "ended_at": NOW + timedelta(seconds=21.4),
        "phone_number_id": "n-1",
    }
    return make_record("inbound", **(facts | values))


def test_the_event_says_who_called_whom_and_for_how_long_it_rang() -> None:
    later = NOW + timedelta(seconds=22)
    event = missed_call(record(), later)
    assert event is not None
    assert (event.service, event.event, event.call_sid, event.account_sid) == (
        "calls",
        "call.missed",
        CALL_SID,
        ACCOUNT_SID,
    )
    assert set(event.fields) == {"event", "created_at", "data"}
    assert event.fields["event"] == "call.missed"
    data = event.fields["data"]
    assert list(data) == [
        *("call_sid", "from", "to", "direction", "status", "reason", "ring_duration_sec"),
        *("phone_number_id", "started_at", "ended_at"),
    ]
    assert (data["from"], data["to"], data["direction"]) == (CALLER, OWN_NUMBER, "inbound")
    assert (data["status"], data["reason"], data["ring_duration_sec"]) == ("no-answer", "no-answer", 20)


def test_an_end_that_is_written_twice_is_told_once() -> None:
    first, second = missed_call(record(), NOW), missed_call(record(), NOW + timedelta(hours=1))
    assert first is not None and second is not None
    assert first.event_id == second.event_id


@pytest.mark.parametrize(
    "values",
    [
        {"answered_at": NOW, "status": CallStatus.COMPLETED},
        {"direction": "outbound"},
        {"status": CallStatus.RINGING},
    ],
)
def test_other_calls_are_not_missed(values: dict[str, Any]) -> None:
    call = record()
    for name, value in values.items():
        setattr(call, name, value)
    assert missed_call(call, NOW) is None


@pytest.mark.parametrize(
    ("cause", "source", "rang", "reason"),
    [
        (NO_ANSWER, "system", True, "no-answer"),
        (NO_USER_RESPONSE, "callee", True, "no-answer"),
        (ALLOTTED_TIMEOUT, "system", True, "no-answer"),
        (NO_ANSWER, "system", False, "unreachable"),
        (USER_BUSY, "callee", True, "busy"),
        (USER_BUSY, "api", False, "busy"),
        (ORIGINATOR_CANCEL, "caller", True, "caller_hangup"),
        (ORIGINATOR_CANCEL, "caller", False, "caller_hangup"),
        (LOSE_RACE, "caller", True, "caller_hangup"),
        (NO_ANSWER, "caller", True, "caller_hangup"),
        (CALL_REJECTED, "callee", True, "rejected"),
        (ORIGINATOR_CANCEL, "api", True, "rejected"),
        (NORMAL_CLEARING, "api", True, "rejected"),
        (BALANCE_EXHAUSTED, "system", False, "rejected"),
        (UNALLOCATED_NUMBER, "carrier", False, "unreachable"),
        (NO_ROUTE_DESTINATION, "system", True, "unreachable"),
        (DESTINATION_OUT_OF_ORDER, "carrier", True, "unreachable"),
        (STREAM_DISCONNECTED, "stream", True, "unreachable"),
        (NORMAL_TEMPORARY_FAILURE, "system", True, "unreachable"),
        (SYSTEM_SHUTDOWN, "system", True, "unreachable"),
    ],
)
def test_each_end_has_one_reason(cause: HangupCause, source: Any, rang: bool, reason: str) -> None:
    assert missed_reason(record(cause, rang=rang, hangup_source=source)) == reason


def test_a_call_that_a_restart_cut_off_while_it_rang_is_missed() -> None:
    call = record(status=CallStatus.RINGING, hangup_cause=None, hangup_source=None, ended_at=None)
    close_record(call, CRASH, Rates(), PRODUCTS.of(call))
    event = missed_call(call, NOW + timedelta(minutes=5))
    assert event is not None
    data = event.fields["data"]
    assert (data["status"], data["reason"], data["ring_duration_sec"]) == ("failed", "unreachable", 0)
