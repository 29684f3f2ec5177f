"""Recordings: what is on disk, also when things go wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from media import EngineSettings, PlaybackFinished, RecordingFailed, RecordingFinished
from media.aio import MediaEngine
from tests.support.media_bench import MediaBench, amplitude_at, sine, towards, until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def bench() -> AsyncIterator[MediaBench]:
    engine = MediaEngine(EngineSettings(port_min=14400, port_max=14499, quarantine_s=0))
    await engine.start()
    try:
        yield MediaBench(engine)
    finally:
        await engine.close()


def channels_of(path: Path) -> list[bytes]:
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getsampwidth()) == (8000, 2)
        count = file.getnchannels()
        frames = file.readframes(file.getnframes())
    return [
        b"".join(frames[at : at + 2] for at in range(2 * channel, len(frames), 2 * count))
        for channel in range(count)
    ]


async def test_left_is_received_and_right_is_sent(bench: MediaBench, tmp_path: Path) -> None:
    one, other = bench.pair()
    path = tmp_path / "call.wav"
    one.stream.start_recording(str(path))
    one.stream.play(sine(400, 500))
    other.stream.play(sine(1000, 500))
    await one.expect(PlaybackFinished)
    await other.expect(PlaybackFinished)
    one.stream.stop_recording()
    finished = await one.expect(RecordingFinished)
    assert finished.error is None
    assert finished.path == str(path)
    assert finished.bytes == path.stat().st_size
    received, sent = channels_of(path)
    assert len(received) // 16 == finished.duration_ms
    assert amplitude_at(received, 1000) > 5000
    assert amplitude_at(received, 400) < 100
    assert amplitude_at(sent, 400) > 5000
    assert amplitude_at(sent, 1000) < 100


async def test_a_linked_stream_is_recorded_in_both_directions(bench: MediaBench, tmp_path: Path) -> None:
    a = bench.open()
    b = bench.open(near=a)
    caller, callee = bench.open(), bench.open()
    for one, other in ((a, caller), (b, callee)):
        one.stream.connect(towards(other.stream))
        other.stream.connect(towards(one.stream))
    a.stream.link(b.stream)
    path = tmp_path / "bridge.wav"
    a.stream.start_recording(str(path))
    caller.stream.play(sine(400, 500))
    callee.stream.play(sine(1000, 500))
    await caller.expect(PlaybackFinished)
    await callee.expect(PlaybackFinished)
    await asyncio.sleep(0.1)
    a.stream.close()
    await a.expect(RecordingFinished)
    received, sent = channels_of(path)
    assert amplitude_at(received, 400) > 5000
    assert amplitude_at(sent, 1000) > 5000


async def test_one_channel_holds_both_sides(bench: MediaBench, tmp_path: Path) -> None:
    one, other = bench.pair()
    path = tmp_path / "mono.wav"
    one.stream.start_recording(str(path), channels=1)
    one.stream.play(sine(400, 300))
    other.stream.play(sine(1000, 300))
    await one.expect(PlaybackFinished)
    await other.expect(PlaybackFinished)
    one.stream.stop_recording()
    await one.expect(RecordingFinished)
    (both,) = channels_of(path)
    assert amplitude_at(both, 400) > 4000
    assert amplitude_at(both, 1000) > 4000


async def test_a_file_that_cannot_be_made_is_an_error_at_once(bench: MediaBench, tmp_path: Path) -> None:
    stream = bench.open().stream
    with pytest.raises(RecordingFailed, match="No such file"):
        stream.start_recording(str(tmp_path / "missing" / "x.wav"))


async def test_a_full_disk_ends_the_recording_only(bench: MediaBench) -> None:
    one, other = bench.pair()
    one.stream.start_recording("/dev/full")
    finished = await one.expect(RecordingFinished)
    assert finished.error == os.strerror(28)
    one.stream.play(sine(400, 100))
    await one.expect(PlaybackFinished)


async def test_closing_the_engine_completes_recordings(tmp_path: Path) -> None:
    engine = MediaEngine(EngineSettings(port_min=14500, port_max=14509))
    await engine.start()
    told = MediaBench(engine).open()
    path = tmp_path / "open.wav"
    told.stream.start_recording(str(path))
    await asyncio.sleep(0.2)
    await engine.close()
    assert isinstance(told.events[-1], RecordingFinished)
    assert len(channels_of(path)[0]) > 0


_VICTIM = """
import asyncio, sys
from media import EngineSettings
from media.aio import MediaEngine

async def main() -> None:
    engine = MediaEngine(EngineSettings(port_min=14510, port_max=14519))
    await engine.start()
    engine.open_stream(lambda event: None).start_recording(sys.argv[1])
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_a_killed_process_leaves_a_file_that_plays(tmp_path: Path) -> None:
    path = tmp_path / "killed.wav"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _VICTIM, str(path), cwd=ROOT)
    try:
        await until(lambda: path.exists() and path.stat().st_size > 44 + 4 * 8000 * 1.2, timeout_s=20)
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    received, sent = channels_of(path)
    # The header is made true twice a second.
    assert len(received) == len(sent)
    assert len(received) / 16000 > 0.5
