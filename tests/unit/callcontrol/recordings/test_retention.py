"""Files in the folder of the recordings without an owner."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from callcontrol.models import RecordingStatus
from callcontrol.recordings.retention import FOR_EVER, KeptRecording, Place, is_orphaned

ENDED = datetime(2026, 8, 1, 12, 30, tzinfo=UTC)
OLD, FRESH = timedelta(days=365), timedelta(minutes=1)


@pytest.mark.parametrize(
    ("ended", "status", "place"),
    [
        (None, "in-progress", "nowhere"),
        (None, "paused", "nowhere"),
        (None, "completed", "disk"),
        (None, "failed", "nowhere"),
        (None, None, "nowhere"),
        (ENDED, "in-progress", "nowhere"),
        (ENDED, "paused", "nowhere"),
        (ENDED, "completed", "disk"),
    ],
)
@pytest.mark.parametrize("kept_days", [FOR_EVER, 1, 180])
def test_what_a_call_has_or_is_writing_stays(
    ended: datetime | None, status: RecordingStatus | None, place: Place, kept_days: int
) -> None:
    assert not is_orphaned(KeptRecording(ended, status, place), OLD, kept_days)


@pytest.mark.parametrize(
    "call", [None, KeptRecording(ENDED, "failed", "nowhere"), KeptRecording(ENDED, None, "nowhere")]
)
def test_what_no_call_has_goes_after_a_week(call: KeptRecording | None) -> None:
    assert not is_orphaned(call, FRESH, 180)
    assert not is_orphaned(call, timedelta(days=7, seconds=-1), 180)
    assert is_orphaned(call, timedelta(days=7), 180)
    assert is_orphaned(call, timedelta(days=1), 1), "a server that keeps for a day keeps nothing for longer"
    assert not is_orphaned(call, OLD, FOR_EVER)


@pytest.mark.parametrize("kept_days", [FOR_EVER, 1, 180])
def test_what_was_deleted_goes_at_once(kept_days: int) -> None:
    assert is_orphaned(KeptRecording(ENDED, "deleted", "nowhere"), FRESH, kept_days)


@pytest.mark.parametrize("kept_days", [FOR_EVER, 1, 180])
def test_the_file_of_what_is_in_the_store_goes_at_once(kept_days: int) -> None:
    assert is_orphaned(KeptRecording(ENDED, "completed", "store"), FRESH, kept_days)
    assert not is_orphaned(KeptRecording(None, "completed", "store"), OLD, kept_days), "its call is up"
