"""Files in the folder of the recordings without an owner."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from callcontrol.models import RecordingStatus
from callcontrol.recordings.retention import FOR_EVER, KeptRecording, is_orphaned

ENDED = datetime(2026, 8, 1, 12, 30, tzinfo=UTC)
OLD, FRESH = timedelta(days=365), timedelta(minutes=1)


@pytest.mark.parametrize(
    ("ended", "status", "has_file"),
    [
        (None, "in-progress", False),
        (None, "paused", False),
        (None, "completed", True),
        (None, "failed", False),
        (None, None, False),
        (ENDED, "in-progress", False),
        (ENDED, "paused", False),
        (ENDED, "completed", True),
    ],
)
@pytest.mark.parametrize("kept_days", [FOR_EVER, 1, 180])
def test_what_a_call_has_or_is_writing_stays(
    ended: datetime | None, status: RecordingStatus | None, has_file: bool, kept_days: int
) -> None:
    assert not is_orphaned(KeptRecording(ended, status, has_file), OLD, kept_days)


@pytest.mark.parametrize(
    "call", [None, KeptRecording(ENDED, "failed", False), KeptRecording(ENDED, None, False)]
)
def test_what_no_call_has_goes_after_a_week(call: KeptRecording | None) -> None:
    assert not is_orphaned(call, FRESH, 180)
    assert not is_orphaned(call, timedelta(days=7, seconds=-1), 180)
    assert is_orphaned(call, timedelta(days=7), 180)
    assert is_orphaned(call, timedelta(days=1), 1), "a server that keeps for a day keeps nothing for longer"
    assert not is_orphaned(call, OLD, FOR_EVER)


@pytest.mark.parametrize("kept_days", [FOR_EVER, 1, 180])
def test_what_was_deleted_goes_at_once(kept_days: int) -> None:
    assert is_orphaned(KeptRecording(ENDED, "deleted", False), FRESH, kept_days)
