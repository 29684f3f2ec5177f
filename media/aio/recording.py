"""Recordings of a stream or a conference to a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TypeAlias

from media import _engine
from media.errors import InvalidMedia, RecordingFailed
from media.types import (
    MediaEvent,
    RecordingEnd,
    RecordingFinished,
    RecordingGap,
    RecordingSettings,
    RemoteMedia,
)

# By the numbers of `EventKind` in event_queue.hpp.
_FINISHED = 8
_GAP = 30
# By the limits in recording.hpp; smaller numbers are those of errors.
_LIMITS: dict[int, RecordingEnd] = {1 << 16: "max_duration", 2 << 16: "max_bytes"}

_Source: TypeAlias = _engine.Stream | _engine.Conference


class Recording:
    """
    A recording in progress, or finished; created by `RtpStream.start_recording`.

    The file is playable at any time, up to a second ago. `RecordingFinished` reports its end and the cause,
    such as a full disk or the end of the stream; the stream itself continues.
    """

    def __init__(self, native: _Source, path: str, on_event: Callable[[MediaEvent], None]) -> None:
        self.path = path
        self.on_event = on_event
        self.result: RecordingFinished | None = None
        """Result; None before the end."""
        self.lost_ms = 0
        """Silence in place of audio that a slow disk could not take, in ms."""
        self._native: _Source | None = native
        self._paused = False
        self._done = asyncio.Event()

    @property
    def paused(self) -> bool:
        """True while the recording is paused."""
        return self._paused

    def pause(self) -> None:
        """Pause the recording; harmless when paused or over."""
        self._pause(True)

    def resume(self) -> None:
        """Resume after a pause; harmless when not paused."""
        self._pause(False)

    def stop(self) -> None:
        """End the recording; harmless when it is over. `wait` returns when the file is complete."""
        native, self._native = self._native, None
        if native is not None:
            native.stop_recording()

    async def wait(self) -> RecordingFinished:
        """Wait until the file is complete."""
        await self._done.wait()
        assert self.result is not None
        return self.result

    # For the registry.

    def let_go(self) -> None:
        """Detach from the stream: another recording replaces it and must not get its commands."""
        self._native = None

    def finish(self, reason: int, duration_ms: int, size_bytes: int) -> RecordingFinished:
        """Set the result."""
        self._native = None
        ended_by = _LIMITS.get(reason, "error" if reason else "stopped")
        error = os.strerror(reason) if ended_by == "error" else None
        self.result = RecordingFinished(self.path, duration_ms, size_bytes, error, ended_by, self.lost_ms)
        self._done.set()
        return self.result

    def _pause(self, paused: bool) -> None:
        if self._native is not None and paused != self._paused:
            self._paused = paused
            self._native.pause_recording(paused)


class Recordings:
    """Incomplete recordings of an engine, including those of closed streams."""

    def __init__(self, next_id: Callable[[], int]) -> None:
        self._next_id = next_id
        self._open: dict[int, Recording] = {}

    def __len__(self) -> int:
        return len(self._open)

    def start(
        self,
        native: _Source,
        path: str,
        settings: RecordingSettings,
        rate_hz: int,
        on_event: Callable[[MediaEvent], None],
    ) -> Recording:
        """
        Start a recording at `rate_hz`, unless the settings name a rate; ends the one in progress.

        Raises:
            InvalidMedia: A setting is out of range, or the encoding was not built in.
            RecordingFailed: The file cannot be created.
        """
        if "\0" in path:
            raise InvalidMedia("the path of a recording contains NUL")
        options = _options_of(settings, rate_hz)
        recording_id = self._next_id()
        recording = Recording(native, path, on_event)
        self._open[recording_id] = recording
        error = native.start_recording(recording_id, path, options)
        if error:
            del self._open[recording_id]
            raise RecordingFailed(path, os.strerror(error))
        return recording

    def decode(
        self, kind: int, recording_id: int, a: int, b: int, c: int
    ) -> tuple[Recording, MediaEvent] | None:
        """Decode an event record of a recording; None for any other."""
        recording = self._open.get(recording_id)
        if recording is None:
            return None
        if kind == _FINISHED:
            del self._open[recording_id]
            return recording, recording.finish(a, b, c)
        if kind == _GAP:
            recording.lost_ms = b
            return recording, RecordingGap(recording.path, b)
        return None


def natural_rate(remote: RemoteMedia | None) -> int:
    """Return the engine's sample rate for a stream's codec."""
    if remote is None:
        return 8000
    if remote.codec == "L16":
        return remote.clock_rate
    return 16000 if remote.codec in ("G722", "OPUS") else 8000


def _options_of(settings: RecordingSettings, rate_hz: int) -> _engine.RecordingOptions:
    try:
        options = _engine.RecordingOptions(
            settings.encoding, settings.channels, settings.sample_rate or rate_hz
        )
        options.pause_as_silence = settings.pause == "silence"
        options.max_duration_ms = round((settings.max_duration_s or 0) * 1000)
        options.max_bytes = settings.max_bytes or 0
    except (ValueError, TypeError) as error:
        raise InvalidMedia(f"cannot record with {settings}: {error}") from error
    return options
