"""Retention of recordings, and files on disk without a call."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from callcontrol.calls.recording import PENDING
from callcontrol.models import RecordingStatus

FOR_EVER: Final = 0
"""Number of days that means no end."""

LEFT_OVERS_KEPT: Final = timedelta(days=7)
"""Retention of a file without a call, so that an operator who restored a backup can save it."""

Place = Literal["disk", "store", "nowhere"]
"""Place of a recording: a file, an object in the store, or neither."""


@dataclass(frozen=True, slots=True)
class KeptRecording:
    """State of the call or message that a file is named after."""

    ended_at: datetime | None
    status: RecordingStatus | None
    place: Place


def is_orphaned(call: KeptRecording | None, age: timedelta, kept_days: int) -> bool:
    """
    Return True if a file in the folder of recordings must be deleted although no retention covers it.

    Args:
        call: Call or message that the file is named after; None if there is none.
        age: Time since the file was last written.
        kept_days: Retention of the server; ``FOR_EVER`` also keeps files without a call.
    """
    if call is not None:
        if call.place == "disk" or call.ended_at is None or call.status in PENDING:
            return False
        # A copy in the store is complete before the row names it.
        if call.place == "store" or call.status == "deleted":
            return True
    return kept_days != FOR_EVER and age >= min(LEFT_OVERS_KEPT, timedelta(days=kept_days))
