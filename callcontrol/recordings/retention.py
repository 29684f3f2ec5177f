"""How long recordings are kept, and which files on the disk belong to no call."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from callcontrol.calls.recording import PENDING
from callcontrol.models import RecordingStatus

MAX_RETENTION_DAYS: Final = 3650
FOR_EVER: Final = 0
"""The number of days that stands for no end."""

LEFT_OVERS_KEPT: Final = timedelta(days=7)
"""How long a file stays that no call has, so that an operator who restored a backup can still save it."""


@dataclass(frozen=True, slots=True)
class KeptRecording:
    """What the record of a call says of the file that bears the call's name."""

    ended_at: datetime | None
    status: RecordingStatus | None
    has_file: bool


def is_left_over(call: KeptRecording | None, age: timedelta, kept_days: int) -> bool:
    """
    Whether a file in the folder of the recordings is to be deleted though no retention asked for it.

    Args:
        call: The call that the file is named after; None when there is none.
        age: How long ago the file was last written.
        kept_days: How long the server keeps recordings; ``FOR_EVER`` keeps what belongs to no call, too.
    """
    if call is not None:
        if call.has_file or call.ended_at is None or call.status in PENDING:
            return False
        if call.status == "deleted":
            return True
    return kept_days != FOR_EVER and age >= min(LEFT_OVERS_KEPT, timedelta(days=kept_days))
