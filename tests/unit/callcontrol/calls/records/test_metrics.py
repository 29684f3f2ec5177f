"""Metrics of calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from callcontrol.calls.records.metrics import CallMetrics
from callcontrol.models import CallRecord, CallStatus
from tests.support.domain import make_record

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


def ended(direction: Any, status: CallStatus, **after_s: float) -> CallRecord:
    moments: dict[str, Any] = {f"{name}_at": BEGAN + timedelta(seconds=s) for name, s in after_s.items()}
    return make_record(
        direction,
        created_at=BEGAN,
        status=status,
        hangup_cause="NORMAL_CLEARING",
        hangup_source="callee",
        **moments,
    )


def test_an_answered_call_counts_in_all_distributions() -> None:
    metrics = CallMetrics()
    metrics.note_end(ended("outbound", CallStatus.COMPLETED, ringing=1.5, answered=6.0, ended=66.0))
    assert +metrics.ended == {("outbound", "completed"): 1}
    assert metrics.answered == {"outbound": 1, "inbound": 0}
    assert metrics.causes == {("NORMAL_CLEARING", "callee"): 1}
    assert (metrics.post_dial_delay_s.count, metrics.post_dial_delay_s.sum) == (1, 1.5)
    assert (metrics.set_up_s["outbound"].sum, metrics.duration_s["outbound"].sum) == (6.0, 60.0)


def test_a_call_without_an_answer_has_no_set_up_time() -> None:
    metrics = CallMetrics()
    metrics.note_end(ended("outbound", CallStatus.NO_ANSWER, ringing=2.0, ended=30.0))
    metrics.note_end(ended("outbound", CallStatus.FAILED, ended=4.0))
    metrics.note_end(ended("inbound", CallStatus.BUSY, ringing=0.1, ended=0.2))
    assert metrics.ended.total() == 3 and metrics.answered.total() == 0
    assert metrics.set_up_s["outbound"].count == metrics.duration_s["outbound"].count == 0
    assert (metrics.post_dial_delay_s.count, metrics.post_dial_delay_s.sum) == (1, 2.0)


def test_a_call_answered_at_once_was_ringing_until_then() -> None:
    metrics = CallMetrics()
    metrics.note_end(ended("outbound", CallStatus.COMPLETED, answered=0.5, ended=1.0))
    assert metrics.post_dial_delay_s.sum == 0.5


def test_times_that_run_backwards_count_as_nothing() -> None:
    metrics = CallMetrics()
    metrics.note_end(ended("inbound", CallStatus.COMPLETED, answered=-3.0, ended=-4.0))
    assert metrics.set_up_s["inbound"].sum == metrics.duration_s["inbound"].sum == 0.0
