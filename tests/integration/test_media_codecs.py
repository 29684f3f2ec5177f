"""Bridged calls of every kind of codec: what one end says, the other hears."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product
from math import log10

import pytest

from media._engine import supports
from media.aio import MediaEngine
from media.errors import InvalidMedia, StreamClosed
from media.types import DtmfReceived, DtmfSent, PlaybackFinished
from tests.support.media_bench import MediaBench, Told, amplitude_at, sine, towards, until
from tests.support.phone import engine_settings

_CODECS: dict[str, dict[str, object]] = {
    "PCMU": {"codec": "PCMU", "payload_type": 0},
    "PCMA": {"codec": "PCMA", "payload_type": 8},
    "G722": {"codec": "G722", "payload_type": 9},
    "L16/8000": {"codec": "L16", "payload_type": 117},
    "L16/16000": {"codec": "L16", "payload_type": 118, "clock_rate": 16000},
    "OPUS": {"codec": "OPUS", "payload_type": 111, "clock_rate": 48000},
}
_BUILT = [
    name
    for name, agreed in _CODECS.items()
    if supports(str(agreed["codec"]), int(str(agreed.get("clock_rate", 8000))))
]


@pytest.fixture
async def bench() -> AsyncIterator[MediaBench]:
    engine = MediaEngine(engine_settings(600))
    await engine.start()
    try:
        yield MediaBench(engine)
    finally:
        await engine.close()


class Call:
    """Two far ends and the linked streams between them, all of one engine."""

    def __init__(self, bench: MediaBench, left: dict[str, object], right: dict[str, object]) -> None:
        self.caller, self.a = bench.open(), bench.open()
        self.b, self.callee = bench.open(near=self.a), bench.open()
        join(self.caller, self.a, left)
        join(self.callee, self.b, right)
        self.a.stream.link(self.b.stream)
        self.heard = bytearray()

    def listen(self, rate_hz: int) -> None:
        """Keep what the callee hears."""
        assert rate_hz in (8000, 16000)
        self.callee.stream.open_tap(
            sample_rate=8000 if rate_hz == 8000 else 16000, on_frames=self.heard.extend
        )


def join(one: Told, other: Told, agreed: dict[str, object]) -> None:
    """Connect two streams with what was agreed."""
    one.stream.connect(towards(other.stream, **agreed))
    other.stream.connect(towards(one.stream, **agreed))


def level_db(heard: bytearray, rate_hz: int) -> float:
    """Level of the loudest half second, against the tone that was sent."""
    half = rate_hz // 2 * 2
    windows = [bytes(heard[at : at + half]) for at in range(0, len(heard) - half + 1, half // 4)]
    loudest = max(amplitude_at(window, 1000, rate_hz) for window in windows)
    return 20 * log10(max(loudest, 1) / 12000)


@pytest.mark.parametrize("left", _BUILT)
async def test_a_tone_reaches_far_ends_of_every_codec(bench: MediaBench, left: str) -> None:
    calls = [(right, Call(bench, _CODECS[left], _CODECS[right])) for right in _BUILT]
    for _, call in calls:
        call.listen(16000)
        call.caller.stream.play(sine(1000, 1500))
    for _, call in calls:
        await call.caller.expect(PlaybackFinished)
    await until(lambda: all(len(call.heard) >= 2 * 16000 * 5 // 4 for _, call in calls))
    for right, call in calls:
        assert abs(level_db(call.heard, 16000)) < 0.5, f"{left} to {right}"


@pytest.mark.parametrize(("packet_ms", "tap_hz"), list(product((10, 30, 60), (8000, 16000))))
async def test_packets_of_one_length_become_packets_of_another(
    bench: MediaBench, packet_ms: int, tap_hz: int
) -> None:
    call = Call(bench, {**_CODECS["PCMU"], "ptime_ms": packet_ms}, _CODECS["PCMU"])
    call.listen(tap_hz)
    call.caller.stream.play(sine(1000, 1500))
    await call.caller.expect(PlaybackFinished)
    await until(lambda: len(call.heard) >= 2 * tap_hz * 5 // 4)
    assert abs(level_db(call.heard, tap_hz)) < 0.5
    sent = call.b.stream.stats()
    # 20 ms of G.711 and a header each.
    assert sent.packets_out > 0
    assert sent.bytes_out == sent.packets_out * 172


async def test_mute_is_silence_and_digits_still_pass(bench: MediaBench) -> None:
    call = Call(bench, _CODECS["PCMU"], _CODECS["L16/16000"])
    call.listen(16000)
    call.a.stream.mute(received=True)
    call.caller.stream.play(sine(1000, 600))
    await call.caller.expect(PlaybackFinished)
    await until(lambda: len(call.heard) >= 2 * 16000 // 2)
    assert not any(call.heard)
    assert call.b.stream.stats().packets_out > 10
    call.caller.stream.send_dtmf("5", 100, 60)
    assert (await call.callee.expect(DtmfReceived)).digit == "5"
    call.a.stream.mute()
    call.heard.clear()
    call.caller.stream.play(sine(1000, 1000))
    await until(lambda: len(call.heard) >= 2 * 16000 and abs(level_db(call.heard, 16000)) < 0.5)
    call.a.stream.close()
    with pytest.raises(StreamClosed):
        call.a.stream.mute(sent=True)


async def test_a_codec_may_change_while_a_call_is_up(bench: MediaBench) -> None:
    call = Call(bench, _CODECS["PCMU"], _CODECS["PCMU"])
    call.listen(8000)
    call.caller.stream.play(sine(1000, 1000), loop=True)
    for name in ("L16/16000", "PCMA", "L16/8000", "PCMU"):
        join(call.callee, call.b, {**_CODECS[name], "ptime_ms": 40 if name == "PCMA" else 20})
        call.heard.clear()
        await until(lambda: len(call.heard) >= 2 * 8000 and abs(level_db(call.heard, 8000)) < 0.5)


async def test_digits_are_tones_where_events_are_not_taken(bench: MediaBench) -> None:
    one, other = bench.pair(dtmf_payload_type=None)
    heard = bytearray()
    other.stream.open_tap(on_frames=heard.extend)
    one.stream.send_dtmf("1", 200, 80)
    assert (await one.expect(DtmfSent)).digits == "1"
    await until(lambda: any(heard[:-3200]))
    begin = next(at for at in range(0, len(heard), 320) if any(heard[at : at + 320]))
    tone = bytes(heard[begin + 320 : begin + 320 * 9])
    assert amplitude_at(tone, 697) == pytest.approx(7200, rel=0.1)
    assert amplitude_at(tone, 1209) == pytest.approx(9070, rel=0.1)


async def test_a_codec_the_engine_lacks_is_named(bench: MediaBench) -> None:
    one = bench.open()
    with pytest.raises(InvalidMedia, match="L16/44100"):
        one.stream.connect(towards(one.stream, codec="L16", payload_type=10, clock_rate=44100))


@pytest.mark.skipif("OPUS" not in _BUILT, reason="the engine was built without libopus")
async def test_packets_that_a_codec_cannot_fill_are_named(bench: MediaBench) -> None:
    one = bench.open()
    with pytest.raises(InvalidMedia, match="ptime of Opus"):
        one.stream.connect(towards(one.stream, **_CODECS["OPUS"], ptime_ms=25))
    one.stream.connect(towards(one.stream, **_CODECS["PCMU"], ptime_ms=25))
