"""Recovery of recordings whose process was killed: the file is complete up to then, and is kept."""

import asyncio
import wave
from pathlib import Path
from typing import Final

from callcontrol.calls.recording import PENDING, recording_file, recording_url
from callcontrol.models import CallRecord

_WAV_HEADER_BYTES: Final = 92


async def keep_recording(record: CallRecord, folder: Path) -> int | None:
    """
    Attach the recording of a recovered call to its record; returns its length in milliseconds.

    Returns None without a new recording: there is none, it has no audio, or the record has it already.
    """
    path = folder / recording_file(record.call_sid)
    recorded_ms = None
    if record.recording_url is None:
        recorded_ms = await asyncio.to_thread(_recorded_ms, path)
    if recorded_ms is not None:
        record.recording_path = str(path)
        record.recording_url = recording_url(record.call_sid)
        record.recording_status = "completed"
    elif record.recording_status in PENDING:
        record.recording_status = "failed"
    return recorded_ms


def _recorded_ms(path: Path) -> int | None:
    """Length of a recording by the size of its file: the header may be a second behind."""
    try:
        audio_bytes = path.stat().st_size - _WAV_HEADER_BYTES
        with wave.open(str(path), "rb") as file:
            second_bytes = file.getframerate() * file.getnchannels() * file.getsampwidth()
    except (OSError, EOFError, wave.Error):
        return None
    return audio_bytes * 1000 // second_bytes if audio_bytes > 0 else None
