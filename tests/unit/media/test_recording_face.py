"""Recordings as Python sees them, without an engine."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from media import _engine
from media.aio.recording import Recordings, natural_rate
from media.errors import InvalidMedia, RecordingFailed
from media.types import MediaEvent, RecordingGap, RecordingSettings, RemoteMedia


class NotedSource:
    """Takes note of what it is told."""

    def __init__(self) -> None:
        self.error = 0
        self.calls: list[object] = []

    def start_recording(self, recording_id: int, path: str, options: _engine.RecordingOptions) -> int:
        self.calls.append((recording_id, path, options.max_duration_ms, options.max_bytes))
        return self.error

    def pause_recording(self, paused: bool) -> None:
        self.calls.append(paused)

    def stop_recording(self) -> None:
        self.calls.append("stop")


@pytest.fixture
def recordings() -> Recordings:
    numbers = iter(range(1, 100))
    return Recordings(lambda: next(numbers))


def ignore(event: MediaEvent) -> None: ...


def test_a_recording_that_cannot_start_is_forgotten(recordings: Recordings) -> None:
    source = NotedSource()
    source.error = 2
    with pytest.raises(RecordingFailed) as raised:
        recordings.start(cast(_engine.Stream, source), "/nowhere/x.wav", RecordingSettings(), 8000, ignore)
    assert raised.value.path == "/nowhere/x.wav"
    assert recordings.decode(8, 1, 0, 0, 0) is None


def test_limits_are_handed_down(recordings: Recordings) -> None:
    source = NotedSource()
    recordings.start(
        cast(_engine.Stream, source), "x", RecordingSettings(max_duration_s=1.5, max_bytes=7), 8000, ignore
    )
    assert source.calls == [(1, "x", 1500, 7)]


@pytest.mark.parametrize("settings", [RecordingSettings(max_duration_s=-1), RecordingSettings(max_bytes=-1)])
def test_limits_below_zero_are_refused(recordings: Recordings, settings: RecordingSettings) -> None:
    with pytest.raises(InvalidMedia):
        recordings.start(cast(_engine.Stream, NotedSource()), "x", settings, 8000, ignore)


def test_orders_are_given_once_and_not_after_the_end(recordings: Recordings) -> None:
    source = NotedSource()
    recording = recordings.start(cast(_engine.Stream, source), "x", RecordingSettings(), 8000, ignore)
    recording.pause()
    recording.pause()
    assert recording.paused
    recording.resume()
    recording.stop()
    recording.stop()
    recording.pause()
    assert source.calls[1:] == [True, False, "stop"]


@pytest.mark.parametrize(
    ("reason", "ended_by", "error"),
    [
        (0, "stopped", None),
        (28, "error", "No space left on device"),
        (1 << 16, "max_duration", None),
        (2 << 16, "max_bytes", None),
    ],
)
def test_the_end_says_why(recordings: Recordings, reason: int, ended_by: str, error: str | None) -> None:
    recording = recordings.start(cast(_engine.Stream, NotedSource()), "x", RecordingSettings(), 8000, ignore)
    assert recordings.decode(30, 1, 0, 240, 0) == (recording, RecordingGap("x", 240))
    assert recording.result is None
    told = recordings.decode(8, 1, reason, 1000, 32_092)
    result = asyncio.run(recording.wait())
    assert told == (recording, result)
    assert (result.ended_by, result.error, result.lost_ms) == (ended_by, error, 240)
    assert (result.duration_ms, result.bytes) == (1000, 32_092)
    assert recordings.decode(8, 1, reason, 1000, 32_092) is None


@pytest.mark.parametrize(
    ("codec", "clock_rate", "rate_hz"),
    [("PCMA", 8000, 8000), ("G722", 8000, 16000), ("OPUS", 48000, 16000), ("L16", 16000, 16000)],
)
def test_the_rate_is_the_codecs(codec: str, clock_rate: int, rate_hz: int) -> None:
    remote = RemoteMedia("192.0.2.1", 4000, codec, 96, clock_rate=clock_rate)
    assert natural_rate(remote) == rate_hz


def test_the_rate_is_that_of_telephony_before_anything_is_agreed() -> None:
    assert natural_rate(None) == 8000
