"""Requests to a routing webhook, and the meaning of its answers."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from callcontrol.masking.routing import (
    CallerRoute,
    InvalidRoutingAnswer,
    RoutingResult,
    read_routing,
    routing_request,
    session_route,
)
from callcontrol.masking.sessions import MaskingSession, choose, session_object
from callcontrol.masking.steps.connect import Connect
from callcontrol.models.parties import PhoneTarget
from tests.support.domain import ACCOUNT_SID, NOW

A, B, MASKED = "+919810000001", "+919810000002", "+918047550001"
OTHERS_MASKED = "+918047550002"
SESSION = MaskingSession(
    session_id="session-1",
    account_sid=ACCOUNT_SID,
    party_a=A,
    party_b=B,
    masked_number=MASKED,
    expires_at=NOW + timedelta(hours=1),
    created_at=NOW,
    updated_at=NOW,
    call_time_limit_s=60,
)


def read(answer: Any, *, record_calls: bool = True) -> RoutingResult:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return read_routing(
        body,
        caller=A,
        masked_number=MASKED,
        record_calls=record_calls,
        allowed_countries={"IN"},
        is_masked=OTHERS_MASKED.__eq__,
    )


def test_the_question() -> None:
    assert json.loads(routing_request("call-1", A, MASKED, NOW)) == {
        "call_sid": "call-1",
        "caller_number": A,
        "masked_number": MASKED,
        "timestamp": "2026-01-02T03:04:05.000Z",
    }
    assert json.loads(routing_request("call-1", None, MASKED, NOW))["caller_number"] is None


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"target_number": "9810000002"}, CallerRoute(B, record=True)),
        ({"target_number": B, "max_duration_sec": 10}, CallerRoute(B, record=True, max_duration_s=10)),
        ({"target_number": B, "record": False, "note": "x"}, CallerRoute(B, record=False)),
        ({"target_number": B, "record": None, "max_duration_sec": None}, CallerRoute(B, record=True)),
        ({"target_number": "+918040000000"}, CallerRoute("+918040000000", record=True)),
        ({"action": "reject"}, "rejected"),
        ({"action": "reject", "target_number": B}, "rejected"),
    ],
)
def test_answers(answer: Any, found: RoutingResult) -> None:
    assert read(answer) == found


def test_calls_are_recorded_as_the_account_has_set_unless_something_else_is_said() -> None:
    assert read({"target_number": B}, record_calls=False) == CallerRoute(B, record=False)
    assert read({"target_number": B, "record": True}, record_calls=False) == CallerRoute(B, record=True)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff\xfe",
        b"[" * 16_000,
        b'{"target_number": ' + b"9" * 5000 + b"}",
        [],
        "9810000002",
        None,
        {},
        {"target_number": 9810000002},
        {"target_number": "12"},
        {"target_number": "+14155550100"},
        {"target_number": "sip:someone@example.com"},
        {"target_number": "+911800123456"},
        {"target_number": A},
        {"target_number": "9810000001"},
        {"target_number": MASKED},
        {"target_number": OTHERS_MASKED},
        {"target_number": B, "max_duration_sec": 9},
        {"target_number": B, "max_duration_sec": 7201},
        {"target_number": B, "max_duration_sec": 60.0},
        {"target_number": B, "max_duration_sec": True},
        {"target_number": B, "record": "yes"},
        {"target_number": B, "action": "forward"},
        {"action": {"a": 1}},
    ],
)
def test_what_is_no_answer(answer: Any) -> None:
    with pytest.raises(InvalidRoutingAnswer):
        read(answer)


def test_where_a_session_leads() -> None:
    route = session_route(SESSION, B, record_calls=True)
    assert route == CallerRoute(A, record=True, max_duration_s=60, session_id="session-1")
    assert session_route(replace(SESSION, record=False), A, record_calls=True).record is False
    step = route.connect(MASKED)
    assert isinstance(step, Connect)
    assert (step.party.target, step.party.caller_id) == (PhoneTarget(A), MASKED)
    assert (step.max_duration_s, step.record, step.party.passthrough) == (60.0, True, False)


@pytest.mark.parametrize(
    ("seconds", "changes", "status", "ended_at"),
    [
        (0, {}, "active", None),
        (3599.9, {}, "active", None),
        (3600, {}, "expired", "2026-01-02T04:04:05.000Z"),
        (10, {"ended": "closed", "ended_at": NOW}, "closed", "2026-01-02T03:04:05.000Z"),
        (9999, {"ended": "closed", "ended_at": NOW}, "closed", "2026-01-02T03:04:05.000Z"),
    ],
)
def test_the_status_of_a_session(
    seconds: float, changes: dict[str, Any], status: str, ended_at: str | None
) -> None:
    shown = session_object(replace(SESSION, **changes), NOW + timedelta(seconds=seconds))
    assert (shown["status"], shown["ended_at"]) == (status, ended_at)
    assert (shown["party_a"], shown["party_b"]) == ("9810000001", "9810000002")
    assert [item["target_number"] for item in shown["mappings"]] == [B, A]


def test_the_choice_of_a_number() -> None:
    pool = [MASKED, "+919810777777", "+918047550003"]
    assert choose(pool, set(), A, geo_match=False) == MASKED
    assert choose(pool, {MASKED}, A, geo_match=False) == pool[1]
    assert choose(pool, set(), A, geo_match=True) == pool[1]
    assert choose(pool, {pool[1]}, A, geo_match=True) == MASKED
    assert choose(pool, set(pool), A, geo_match=True) is None
    assert choose([], set(), A, geo_match=True) is None
