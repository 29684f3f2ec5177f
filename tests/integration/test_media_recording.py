"""Recordings: what is on disk, also when things go wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import sys
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from media.aio import MediaEngine
from media.errors import InvalidMedia, RecordingFailed
from media.types import PlaybackFinished, RecordingEncoding, RecordingFinished, RecordingSettings
from tests.support.media_bench import PATIENCE, MediaBench, amplitude_at, sine, towards, until
from tests.support.phone import engine_settings
from tests.support.ports import port_range
from tests.support.waiting import time_passes

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def bench() -> AsyncIterator[MediaBench]:
    engine = MediaEngine(engine_settings(100))
    await engine.start()
    try:
        yield MediaBench(engine)
    finally:
        await engine.close()


def last_sample(ogg: bytes) -> int:
    """Number of the last sample in the last whole page of an Ogg stream (RFC 3533 6)."""
    at, last = 0, 0
    while at + 27 <= len(ogg):
        assert ogg[at : at + 4] == b"OggS"
        granule, segments = struct.unpack_from("<Q", ogg, at + 6)[0], ogg[at + 26]
        end = at + 27 + segments + sum(ogg[at + 27 : at + 27 + segments])
        if end > len(ogg):
            break
        at, last = end, granule
    return last


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
    await time_passes(0.1)
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


async def test_paused_time_is_left_out(bench: MediaBench, tmp_path: Path) -> None:
    one, other = bench.pair()
    path = tmp_path / "paused.wav"
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    recording = one.stream.start_recording(str(path), RecordingSettings(channels=1))
    other.stream.play(sine(1000, 3000))
    await time_passes(0.5)
    recording.pause()
    await time_passes(1.0)
    recording.resume()
    await time_passes(0.5)
    recording.stop()
    finished = await recording.wait()
    assert finished == await one.expect(RecordingFinished)
    assert finished.ended_by == "stopped"
    assert recording.result is finished
    # What is left out is a second at least, however slow the machine.
    assert 800 <= finished.duration_ms <= 1000 * (loop.time() - began_s) - 1000 + 100
    assert amplitude_at(channels_of(path)[0], 1000) > 8000


@pytest.mark.parametrize("encoding", ["wav-mulaw", "ogg-opus"])
async def test_a_recording_may_be_small(
    bench: MediaBench, tmp_path: Path, encoding: RecordingEncoding
) -> None:
    one, other = bench.pair()
    path = tmp_path / "small"
    recording = one.stream.start_recording(str(path), RecordingSettings(encoding=encoding))
    other.stream.play(sine(1000, 500))
    await other.expect(PlaybackFinished)
    one.stream.close()
    finished = await recording.wait()
    assert finished.error is None
    assert finished.duration_ms >= 480
    assert (
        finished.bytes == path.stat().st_size < finished.duration_ms * (17 if encoding == "wav-mulaw" else 9)
    )
    if encoding == "ogg-opus":
        assert last_sample(path.read_bytes()) == pytest.approx(finished.duration_ms * 48, abs=48 * 40)


async def test_a_limit_ends_the_recording_and_not_the_stream(bench: MediaBench, tmp_path: Path) -> None:
    one, _ = bench.pair()
    path = tmp_path / "limited.wav"
    recording = one.stream.start_recording(str(path), RecordingSettings(max_duration_s=0.4))
    finished = await recording.wait()
    assert (finished.ended_by, finished.error, finished.duration_ms) == ("max_duration", None, 400)
    # Orders for what is over reach nobody, the next recording least of all.
    following = one.stream.start_recording(str(tmp_path / "next.wav"))
    recording.pause()
    recording.stop()
    await time_passes(0.1)
    assert following.result is None
    following.stop()
    await following.wait()


async def test_the_next_recording_ends_the_one_before(bench: MediaBench, tmp_path: Path) -> None:
    one, _ = bench.pair()
    first = one.stream.start_recording(str(tmp_path / "first.wav"))
    second = one.stream.start_recording(str(tmp_path / "second.wav"))
    first.stop()
    assert (await first.wait()).ended_by == "stopped"
    assert second.result is None
    one.stream.close()
    await second.wait()


async def test_settings_that_cannot_be_are_refused(bench: MediaBench, tmp_path: Path) -> None:
    stream = bench.open().stream
    for settings in (
        RecordingSettings(encoding="mp3"),  # type: ignore[arg-type]  # as a caller without types may
        RecordingSettings(channels=3),  # type: ignore[arg-type]  # likewise
        RecordingSettings(sample_rate=44100),  # type: ignore[arg-type]  # likewise
        RecordingSettings(max_bytes=-1),
    ):
        with pytest.raises(InvalidMedia):
            stream.start_recording(str(tmp_path / "x"), settings)
    with pytest.raises(InvalidMedia):
        stream.start_recording(str(tmp_path / "x\0.wav"))
    assert not (tmp_path / "x").exists()


async def test_closing_the_engine_completes_recordings(tmp_path: Path) -> None:
    engine = MediaEngine(engine_settings(10, quarantine_s=4.0))
    await engine.start()
    told = MediaBench(engine).open()
    path = tmp_path / "open.wav"
    told.stream.start_recording(str(path))
    await time_passes(0.2)
    await engine.close()
    assert isinstance(told.events[-1], RecordingFinished)
    assert len(channels_of(path)[0]) > 0


_VICTIM = """
import asyncio, sys
from media.types import RecordingSettings
from media.aio import MediaEngine
from media.types import EngineSettings

async def main() -> None:
    engine = MediaEngine(EngineSettings(port_min=int(sys.argv[3]), port_max=int(sys.argv[4])))
    await engine.start()
    settings = RecordingSettings(encoding=sys.argv[2])
    engine.open_stream(lambda event: None).start_recording(sys.argv[1], settings)
    await asyncio.sleep(60)

asyncio.run(main())
"""


# Of silence, in two channels.
_THREE_SECONDS_BYTES = {"wav": 96_000, "ogg-opus": 1_000}


@pytest.mark.real_time(reason="the process that is killed records by the system's clock")
@pytest.mark.parametrize("encoding", ["wav", "ogg-opus"])
async def test_a_killed_process_leaves_a_file_that_plays(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "killed"
    arguments = (sys.executable, "-c", _VICTIM, str(path), encoding, *map(str, port_range(10)))
    process = await asyncio.create_subprocess_exec(*arguments, cwd=ROOT)
    loop = asyncio.get_running_loop()
    try:
        await until(path.exists, timeout_s=20)
        began_s = loop.time()
        await until(lambda: path.stat().st_size > _THREE_SECONDS_BYTES[encoding], timeout_s=20)
    finally:
        process.send_signal(signal.SIGKILL)
        ended_s = loop.time()
        await process.wait()
    if encoding == "wav":
        received, sent = channels_of(path)
        assert len(received) == len(sent)
        kept_s = len(received) / 16000
    else:
        kept_s = last_sample(path.read_bytes()) / 48000
    assert kept_s > ended_s - began_s - 1 * PATIENCE


_LIMITED = """
import asyncio, resource, sys
from media.aio import MediaEngine
from media.types import EngineSettings

async def main() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
    engine = MediaEngine(EngineSettings(port_min=int(sys.argv[2]), port_max=int(sys.argv[3])))
    await engine.start()
    stream = engine.open_stream(lambda event: None)
    finished = await stream.start_recording(sys.argv[1]).wait()
    assert finished.ended_by == "error", finished
    assert finished.error == "File too large", finished
    assert not stream.closed
    await engine.close()

asyncio.run(main())
"""


async def test_what_fits_on_the_disk_is_kept_and_plays(tmp_path: Path) -> None:
    path = tmp_path / "limited.wav"
    arguments = (sys.executable, "-c", _LIMITED, str(path), *map(str, port_range(10)))
    process = await asyncio.create_subprocess_exec(*arguments, cwd=ROOT)
    assert await asyncio.wait_for(process.wait(), 20 * PATIENCE) == 0
    received, sent = channels_of(path)
    assert len(received) == len(sent)
    # All there is room for.
    assert len(received) + len(sent) > 29_800
