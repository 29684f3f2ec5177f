"""Detection on real streams: digits, speech, tones and who answered."""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from media.aio import MediaEngine
from media.audio.wav import read_wav
from media.errors import InvalidMedia
from media.types import (
    DtmfReceived,
    GreetingEnded,
    MachineSettings,
    MachineVerdict,
    SpeechSettings,
    SpeechStarted,
    SpeechStopped,
    ToneDetected,
)
from tests.support.media_bench import MediaBench, sine, until
from tests.support.phone import engine_settings

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "audio"


@pytest.fixture
async def bench() -> AsyncIterator[MediaBench]:
    engine = MediaEngine(engine_settings(100))
    await engine.start()
    try:
        yield MediaBench(engine)
    finally:
        await engine.close()


def speech(name: str) -> bytes:
    return read_wav((VECTORS / f"{name}.wav").read_bytes()).pcm


def silence(duration_ms: int) -> bytes:
    return bytes(16 * duration_ms)


def key(low_hz: float, high_hz: float, duration_ms: int = 120) -> bytes:
    return b"".join(
        struct.pack(
            "<h",
            round(6000 * math.sin(2 * math.pi * low_hz * n / 8000))
            + round(6000 * math.sin(2 * math.pi * high_hz * n / 8000)),
        )
        for n in range(8 * duration_ms)
    )


ONE_TWO = key(697, 1209) + silence(100) + key(697, 1336) + silence(200)


async def test_digits_are_found_in_the_audio_when_asked_for(bench: MediaBench) -> None:
    one, other = bench.pair(dtmf_payload_type=None)
    one.stream.detection.start(dtmf=True)
    other.stream.play(ONE_TWO)
    found = [await one.expect(DtmfReceived) for _ in "12"]
    assert [event.digit for event in found] == ["1", "2"]
    assert all(60 <= event.duration_ms <= 300 for event in found)


async def test_digits_are_found_in_the_audio_when_tones_were_agreed(bench: MediaBench) -> None:
    one, other = bench.pair(dtmf_payload_type=None, dtmf_tones=True)
    other.stream.send_dtmf("2#")
    assert (await one.expect(DtmfReceived)).digit == "2"
    assert (await one.expect(DtmfReceived)).digit == "#"


async def test_nothing_is_found_that_is_not_asked_for(bench: MediaBench) -> None:
    one, other = bench.pair(dtmf_payload_type=None)
    one.stream.detection.start(speech=True)
    one.stream.detection.start(dtmf=True, tones=True)
    one.stream.detection.stop("dtmf", "speech")
    other.stream.play(ONE_TWO + sine(1000, 300) + silence(200))
    tone = await one.expect(ToneDetected)
    assert tone.kind == "beep"
    assert abs(tone.freq_hz - 1000) < 20
    assert not any(isinstance(event, DtmfReceived | SpeechStarted) for event in one.events)
    one.stream.detection.stop()


async def test_speech_begins_and_ends(bench: MediaBench) -> None:
    one, other = bench.pair()
    one.stream.detection.start(speech=SpeechSettings(hangover_ms=400))
    other.stream.play(silence(300) + speech("name_en") + silence(1000))
    await one.expect(SpeechStarted)
    stopped = await one.expect(SpeechStopped)
    assert 1000 <= stopped.duration_ms <= 1700


async def test_a_person_answers(bench: MediaBench) -> None:
    one, other = bench.pair()
    one.stream.detection.start(machine=True)
    other.stream.play(silence(300) + speech("hello_en") + silence(2000))
    verdict = await one.expect(MachineVerdict)
    assert (verdict.verdict, verdict.reason) == ("human", "short_greeting")
    assert 1200 <= verdict.took_ms <= 2600


async def test_a_machine_answers_and_beeps(bench: MediaBench) -> None:
    one, other = bench.pair()
    one.stream.detection.start(machine=MachineSettings(greeting_ms=1500))
    other.stream.play(silence(300) + speech("voicemail_hi")[: 16 * 3000] + sine(900, 300) + silence(500))
    verdict = await one.expect(MachineVerdict)
    assert (verdict.verdict, verdict.reason) == ("machine", "long_greeting")
    ended = await one.expect(GreetingEnded)
    assert ended.reason == "beep"
    assert ended.at_ms >= 3500


async def test_nobody_speaks(bench: MediaBench) -> None:
    one, _ = bench.pair()
    one.stream.detection.start(machine=MachineSettings(initial_silence_ms=500))
    verdict = await one.expect(MachineVerdict)
    assert (verdict.verdict, verdict.reason) == ("unknown", "initial_silence")


async def test_settings_out_of_range_are_named(bench: MediaBench) -> None:
    detection = bench.open().stream.detection
    for settings in (
        SpeechSettings(margin_db=0),
        SpeechSettings(min_level_db=0),
        SpeechSettings(hangover_ms=-1),
    ):
        with pytest.raises(InvalidMedia):
            detection.start(speech=settings)
        with pytest.raises(InvalidMedia):
            detection.start(machine=MachineSettings(speech=settings))
    with pytest.raises(InvalidMedia, match="total_ms"):
        detection.start(machine=MachineSettings(total_ms=10**6))


async def test_a_closed_stream_is_left_alone(bench: MediaBench) -> None:
    told = bench.open()
    told.stream.detection.start(dtmf=True, speech=True, machine=True, tones=True)
    told.stream.close()
    told.stream.detection.start(dtmf=True)
    told.stream.detection.stop()
    await asyncio.sleep(0)


async def test_the_level_of_what_is_said_is_measured_while_that_is_asked_for(bench: MediaBench) -> None:
    one, other = bench.pair()
    assert one.stream.meter().level_db is None
    one.stream.detection.start(level=True)
    other.stream.play(sine(440, 1000), loop=True)
    await until(lambda: (one.stream.meter().level_db or 127) < 20)
    loud_db = one.stream.meter().level_db
    assert loud_db is not None and 6 <= loud_db <= 16
    # Also of one that is muted, which others do not hear.
    one.stream.mute(received=True)
    other.stream.stop_playback()
    await until(lambda: one.stream.meter().level_db == 127)
    other.stream.play(sine(440, 1000), loop=True)
    await until(lambda: one.stream.meter().level_db == loud_db)
    meter, stats = one.stream.meter(), one.stream.stats()
    assert 0 < meter.packets_in <= stats.packets_in
    assert (meter.lost, meter.sent_lost) == (stats.lost, stats.sent_lost)
    one.stream.detection.stop("level")
    assert one.stream.meter().level_db is None
    # The next run begins with silence, before it has heard anything.
    other.stream.stop_playback()
    one.stream.detection.start(level=True)
    # A meter tells once a second.
    async with asyncio.timeout(0.9):
        await until(lambda: one.stream.meter().level_db == 127)


async def test_the_level_of_what_is_sent_is_measured_beside_it(bench: MediaBench) -> None:
    one, other = bench.pair()
    one.stream.detection.start(level=True)
    one.stream.play(sine(440, 1000), loop=True)
    await until(lambda: (one.stream.meter().sent_level_db or 127) < 20)
    assert one.stream.meter().level_db == 127, "nothing is said"
    one.stream.stop_playback()
    await until(lambda: one.stream.meter().sent_level_db == 127)
    other.stream.play(sine(440, 1000), loop=True)
    await until(lambda: (one.stream.meter().level_db or 127) < 20)
    assert one.stream.meter().sent_level_db == 127


async def test_the_level_of_what_is_relayed_is_measured_at_the_leg_that_it_is_sent_to(
    bench: MediaBench,
) -> None:
    caller, first = bench.pair()
    second, _ = bench.pair()
    first.stream.link(second.stream)
    caller.stream.play(sine(440, 1000), loop=True)
    # Only the leg that it goes to is measured: the other decodes for it.
    second.stream.detection.start(level=True)
    await until(lambda: (second.stream.meter().sent_level_db or 127) < 20)
    second.stream.mute(sent=True)
    await until(lambda: second.stream.meter().sent_level_db == 127)
