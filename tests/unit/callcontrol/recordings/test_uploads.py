"""Order of uploads: after their calls, again after failures, at once when the store is back."""

from __future__ import annotations

import pytest

from callcontrol.recordings.uploads import LAST_RETRY_S, Upload, UploadSchedule


def upload(sid: str, call_sid: str | None = None) -> Upload:
    return Upload(sid, call_sid or sid, "local", f"s3://bucket/{sid}.wav", {})


@pytest.fixture
def schedule() -> UploadSchedule:
    return UploadSchedule()


def due(schedule: UploadSchedule, *sids: str, at_s: float = 0.0) -> None:
    for sid in sids:
        schedule.hold(upload(sid))
        schedule.call_over(sid, at_s)


def taken(schedule: UploadSchedule, now_s: float, limit: int = 10) -> list[str]:
    return [item.sid for item in schedule.take(now_s, limit)]


def test_an_upload_waits_for_the_end_of_its_call(schedule: UploadSchedule) -> None:
    for sid in ("call", "message"):
        schedule.hold(upload(sid, "call"))
    assert (taken(schedule, 99.0), schedule.next_s(), len(schedule)) == ([], None, 2)
    assert schedule.call_over("call", 100.0)
    assert not schedule.call_over("call", 100.0) and not schedule.call_over("another", 100.0)
    assert schedule.next_s() == 100.0
    assert taken(schedule, 100.0) == ["call", "message"]
    assert taken(schedule, 101.0) == [], "they run"


def test_no_more_run_than_may(schedule: UploadSchedule) -> None:
    due(schedule, "a", "b", "c")
    assert taken(schedule, 0.0, limit=2) == ["a", "b"]
    assert taken(schedule, 0.0, limit=0) == []
    schedule.done("a", 1.0)
    assert (taken(schedule, 1.0, limit=1), len(schedule)) == (["c"], 2)


def test_delays_double_up_to_a_minute(schedule: UploadSchedule) -> None:
    due(schedule, "a")
    now_s, delays = 0.0, []
    for _ in range(30):
        assert taken(schedule, now_s) == ["a"]
        delays.append(schedule.failed("a", now_s))
        assert taken(schedule, now_s + delays[-1] - 0.01) == []
        now_s += delays[-1]
        assert schedule.next_s() == now_s
    assert schedule.untried == 0
    assert delays[:8] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert delays[-1] == LAST_RETRY_S


def test_one_success_makes_all_others_due(schedule: UploadSchedule) -> None:
    due(schedule, "a", "b", "c")
    for _ in range(8):
        now_s = schedule.next_s() or 0.0
        for sid in taken(schedule, now_s):
            schedule.failed(sid, now_s)
    now_s = 1000.0
    assert taken(schedule, now_s, limit=1) == ["a"]
    schedule.failed("b", now_s)
    schedule.done("a", now_s)
    assert sorted(taken(schedule, now_s)) == ["b", "c"]
    assert schedule.failed("b", now_s) == 1.0, "a new series of failures"


def test_an_upload_that_was_dropped_is_not_repeated(schedule: UploadSchedule) -> None:
    due(schedule, "a", "b")
    schedule.drop("a")
    assert taken(schedule, 0.0) == ["b"]
    schedule.drop("b")
    assert schedule.failed("b", 0.0) == 0.0
    assert (taken(schedule, 99.0), len(schedule)) == ([], 0)
    schedule.done("b", 99.0)


def test_an_upload_is_held_once(schedule: UploadSchedule) -> None:
    due(schedule, "a")
    schedule.hold(upload("a"))
    schedule.call_over("a", 0.0)
    assert (taken(schedule, 0.0), len(schedule)) == (["a"], 1)


def test_a_message_is_not_named_like_its_call() -> None:
    assert upload("message", "call").is_message and not upload("call").is_message
