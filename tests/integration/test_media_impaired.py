"""Audio over a bad network: what consumers get stays unbroken, and the figures tell what the network did."""

from __future__ import annotations

import asyncio
import wave
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from media.aio import MediaEngine
from media.types import RecordingFinished
from tests.support.impaired_link import ImpairedLink, Impairment, impaired_link
from tests.support.media_bench import MediaBench, Told, amplitude_at, sine, towards, until
from tests.support.phone import engine_settings
from tests.support.waiting import time_passes

BAD = Impairment(loss=0.05, duplicate=0.02, reorder=0.02, reorder_ms=30, jitter_ms=40)
TONE_HZ = 1000
LENGTH_MS = 3000
WINDOW_BYTES = 2 * 160


@pytest.fixture
async def bench() -> AsyncIterator[MediaBench]:
    engine = MediaEngine(engine_settings(100))
    await engine.start()
    try:
        yield MediaBench(engine)
    finally:
        await engine.close()


def through(link: ImpairedLink, speaker: Told, hearer: Told, **agreed: object) -> None:
    """Connect two streams over the link; the speaker is its near end."""
    for told, (address, port) in ((speaker, link.near), (hearer, link.far)):
        far = towards(told.stream, **agreed)
        told.stream.connect(replace(far, address=address, port=port))


def windows(pcm: bytes) -> list[float]:
    """Amplitude of the tone in each 20 ms."""
    return [
        amplitude_at(pcm[at : at + WINDOW_BYTES], TONE_HZ)
        for at in range(0, len(pcm) - WINDOW_BYTES + 1, WINDOW_BYTES)
    ]


def spoken(amplitudes: list[float]) -> list[float]:
    """From where the tone begins to where it ends."""
    loud = [position for position, amplitude in enumerate(amplitudes) if amplitude > 6000]
    return amplitudes[loud[0] : loud[-1] + 1]


async def test_an_agent_hears_an_unbroken_tone(bench: MediaBench) -> None:
    speaker, hearer = bench.open(), bench.open()
    heard = bytearray()
    async with impaired_link(speaker.stream.local, hearer.stream.local, BAD, seed=41) as link:
        through(link, speaker, hearer)
        hearer.stream.open_tap(on_frames=heard.extend)
        speaker.stream.play(sine(TONE_HZ, LENGTH_MS))
        await until(lambda: link.outward.taken >= LENGTH_MS // 20, 20)
        await time_passes(0.3)
        stats = hearer.stream.stats()
        taken, lost, doubled = link.outward.taken, link.outward.lost, link.outward.duplicated
    tone = spoken(windows(bytes(heard)))
    # Nothing is cut out and nothing put in but what hides a loss.
    assert len(tone) * 20 == pytest.approx(LENGTH_MS, abs=120)
    assert median(tone) == pytest.approx(12000, rel=0.06)
    faded = sum(amplitude < 6000 for amplitude in tone)
    assert faded <= lost + 3
    assert stats.lost == pytest.approx(lost, abs=2)
    assert stats.duplicates == pytest.approx(doubled, abs=2)
    assert stats.packets_in + stats.lost == pytest.approx(taken, abs=doubled + 2)


async def test_a_recording_keeps_real_time(bench: MediaBench, tmp_path: Path) -> None:
    speaker, hearer = bench.open(), bench.open()
    path = tmp_path / "bad.wav"
    loop = asyncio.get_running_loop()
    async with impaired_link(speaker.stream.local, hearer.stream.local, BAD, seed=42) as link:
        through(link, speaker, hearer)
        begun_s = loop.time()
        hearer.stream.start_recording(str(path), channels=1)
        speaker.stream.play(sine(TONE_HZ, LENGTH_MS))
        await until(lambda: link.outward.taken >= LENGTH_MS // 20, 20)
        await time_passes(0.3)
        hearer.stream.stop_recording()
        lasted_ms = 1000 * (loop.time() - begun_s)
        finished = await hearer.expect(RecordingFinished)
        lost = link.outward.lost
    assert finished.duration_ms == pytest.approx(lasted_ms, abs=150)
    with wave.open(str(path)) as file:
        assert file.getframerate() == 8000
        recorded = file.readframes(file.getnframes())
    tone = spoken(windows(recorded))
    assert len(tone) * 20 == pytest.approx(LENGTH_MS, abs=200)
    assert median(tone) == pytest.approx(12000, rel=0.06)
    assert sum(amplitude < 6000 for amplitude in tone) <= 2 * lost + 8


async def test_what_is_lost_on_one_leg_is_told_on_the_other_as_a_gap(bench: MediaBench) -> None:
    """Equal codecs are relayed: the far end must see the gap to conceal it (RFC 3550 7.1)."""
    speaker, near = bench.open(), bench.open()
    far = bench.open(near)
    hearer = bench.open()
    loss = Impairment(loss=0.1)
    async with impaired_link(speaker.stream.local, near.stream.local, loss, Impairment(), seed=43) as link:
        through(link, speaker, near)
        far.stream.connect(towards(hearer.stream))
        hearer.stream.connect(towards(far.stream))
        near.stream.link(far.stream)
        hearer.stream.open_tap(on_frames=lambda frames: None)
        speaker.stream.play(sine(TONE_HZ, 2000))
        await until(lambda: link.outward.taken >= 100, 20)
        await time_passes(0.1)
        lost = link.outward.lost
    assert lost > 3
    assert near.stream.stats().lost == pytest.approx(lost, abs=1)
    assert hearer.stream.stats().lost == pytest.approx(lost, abs=1)


@pytest.mark.parametrize(
    "codec",
    [
        {"codec": "G722", "payload_type": 9},
        {"codec": "OPUS", "payload_type": 111, "clock_rate": 48000},
        {"codec": "L16", "payload_type": 97, "clock_rate": 16000},
    ],
    ids=["G722", "OPUS", "L16"],
)
async def test_a_transcoded_leg_hides_what_the_other_lost(
    bench: MediaBench, codec: dict[str, object]
) -> None:
    speaker, near = bench.open(), bench.open()
    far, hearer = bench.open(near), bench.open()
    heard = bytearray()
    bad = replace(BAD, loss=0.03)
    async with impaired_link(speaker.stream.local, near.stream.local, bad, Impairment(), seed=44) as link:
        through(link, speaker, near)
        far.stream.connect(towards(hearer.stream, dtmf_payload_type=None, **codec))
        hearer.stream.connect(towards(far.stream, dtmf_payload_type=None, **codec))
        near.stream.link(far.stream)
        hearer.stream.open_tap(on_frames=heard.extend)
        speaker.stream.play(sine(TONE_HZ, 3000))
        await until(lambda: link.outward.taken >= 150, 20)
        await time_passes(0.4)
        lost = link.outward.lost
    tone = spoken(windows(bytes(heard)))
    assert len(tone) * 20 == pytest.approx(3000, abs=200)
    assert median(tone) == pytest.approx(12000, rel=0.1)
    assert sum(amplitude < 6000 for amplitude in tone) <= 2 * lost + 6
    # The gap was closed here: the far leg lost nothing.
    assert hearer.stream.stats().lost == 0
