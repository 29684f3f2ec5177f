"""Whole RTP streams over loopback: what one end sends, the other hears."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator

import pytest

from media.aio import MediaEngine
from media.errors import InvalidMedia, PortsExhausted, StreamClosed
from media.types import (
    DtmfReceived,
    DtmfSent,
    EngineSettings,
    FirstPacket,
    MarkReached,
    MediaTimeout,
    PlaybackFinished,
    PlayoutDrained,
    PlayoutLevel,
    PlayoutOverflow,
    RemoteMedia,
)
from tests.support.media_bench import MediaBench, amplitude_at, level, sine, towards, until
from tests.support.phone import engine_settings
from tests.support.waiting import time_passes


@pytest.fixture
async def bench() -> AsyncIterator[MediaBench]:
    engine = MediaEngine(engine_settings(400))
    await engine.start()
    try:
        yield MediaBench(engine)
        stats = engine.stats()
        assert stats.events_dropped == 0
    finally:
        await engine.close()
    assert engine.stats().ports_in_use == 0


async def test_a_call_is_relayed_with_codecs_and_event_types_translated(bench: MediaBench) -> None:
    a = bench.open()
    b = bench.open(near=a)
    caller, callee = bench.open(), bench.open()
    alaw = {"codec": "PCMA", "payload_type": 8, "dtmf_payload_type": 96}
    caller.stream.connect(towards(a.stream))
    a.stream.connect(towards(caller.stream))
    callee.stream.connect(towards(b.stream, **alaw))
    b.stream.connect(towards(callee.stream, **alaw))
    a.stream.link(b.stream)

    heard = bytearray()
    callee.stream.open_tap(on_frames=heard.extend)
    caller.stream.play(sine(1000, 1000))
    await caller.expect(PlaybackFinished)
    await until(lambda: amplitude_at(bytes(heard), 1000) * len(heard) > 10000 * 16000 * 0.9)

    caller.stream.send_dtmf("4#", 80, 60)
    assert (await callee.expect(DtmfReceived)).digit == "4"
    assert (await callee.expect(DtmfReceived)).digit == "#"
    assert (await a.expect(DtmfReceived)).digit == "4"
    assert (await caller.expect(DtmfSent)).digits == "4#"
    assert a.stream.stats().lost == 0
    assert b.stream.stats().packets_out >= 50


async def test_an_echo_comes_back_to_who_spoke(bench: MediaBench) -> None:
    one, other = bench.pair()
    other.stream.link(other.stream)
    heard = bytearray()
    tap = one.stream.open_tap(on_frames=heard.extend)
    tap.write(sine(440, 600))
    tap.mark("said")
    assert await one.expect(MarkReached) == MarkReached("said", cleared=False)
    await one.expect(PlayoutDrained)
    await until(lambda: amplitude_at(bytes(heard), 440) * len(heard) > 11000 * 9600 * 0.9)
    other.stream.unlink()


@pytest.mark.parametrize("encoding", ["l16", "mulaw", "alaw"])
@pytest.mark.parametrize("rate_hz", [8000, 16000])
async def test_a_tap_speaks_and_hears_in_its_format(bench: MediaBench, encoding: str, rate_hz: int) -> None:
    agent, caller = bench.pair()
    frames: list[bytes] = []
    tap = agent.stream.open_tap(
        sample_rate=rate_hz,  # type: ignore[arg-type]
        encoding=encoding,  # type: ignore[arg-type]
        on_frames=frames.append,
    )
    frame_bytes = rate_hz // 50 * (2 if encoding == "l16" else 1)
    await until(lambda: len(frames) >= 3)
    assert {len(frame) for frame in frames} == {frame_bytes}
    tap.write(bytes(frame_bytes * 10))
    assert 0 <= tap.queued_ms <= 200
    tap.mark("end")
    assert (await agent.expect(MarkReached)).name == "end"
    caller.stream.close()


async def test_a_tap_for_both_directions_hears_what_the_party_hears(bench: MediaBench) -> None:
    agent, caller = bench.pair()
    order: list[str] = []
    received, sent = bytearray(), bytearray()

    def on_frames(frame: bytes) -> None:
        order.append("received")
        received.extend(frame)

    def on_sent(frame: bytes) -> None:
        order.append("sent")
        sent.extend(frame)

    tap = agent.stream.open_tap(on_frames=on_frames, on_sent=on_sent)
    tap.watch_level(xoff_ms=300, xon_ms=200)
    caller.stream.play(sine(1000, 2_000))
    tap.write(sine(440, 600))
    assert await agent.expect(PlayoutLevel) == PlayoutLevel("xoff", 600)
    assert await agent.expect(PlayoutLevel) == PlayoutLevel("xon", 200)
    await agent.expect(PlayoutDrained)
    await until(lambda: amplitude_at(bytes(sent), 440) * len(sent) > 11000 * 9600 * 0.9)
    await until(lambda: amplitude_at(bytes(received), 1000) > 5000)
    assert amplitude_at(bytes(sent), 1000) < 500
    assert order == ["received", "sent"] * (len(order) // 2)
    figures = tap.stats()
    assert (figures.queued_ms, figures.played_ms, figures.dropped_ms, figures.underruns) == (0, 600, 0, 0)
    assert figures.prebuffer_ms == 60  # Nothing is known of an agent that has said so little.


async def test_noise_is_sent_where_there_would_be_silence(bench: MediaBench) -> None:
    away, caller = bench.pair()
    heard = bytearray()
    caller.stream.open_tap(on_frames=heard.extend)
    away.stream.comfort_noise(True)
    await until(lambda: 10 < level(bytes(heard[-3200:])) < 100)
    away.stream.comfort_noise(False)
    away.stream.close()
    with pytest.raises(StreamClosed):
        away.stream.comfort_noise(True)


async def test_a_tap_keeps_its_clock_while_nothing_comes(bench: MediaBench) -> None:
    stream = bench.open()
    frames: list[bytes] = []
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    tap = stream.stream.open_tap(on_frames=frames.append)
    await until(lambda: len(frames) >= 50)
    elapsed_s = loop.time() - began_s
    # Fifty frames are a second; they never come faster than that.
    assert elapsed_s > 0.9
    assert all(frame == bytes(320) for frame in frames)
    tap.close()
    await time_passes(0.05)
    count = len(frames)
    await time_passes(0.1)
    assert len(frames) == count


async def test_clear_stops_the_audio_and_tells_the_marks(bench: MediaBench) -> None:
    agent, caller = bench.pair()
    heard = bytearray()
    caller.stream.open_tap(on_frames=heard.extend)
    tap = agent.stream.open_tap(on_frames=lambda frame: None)
    tap.write(sine(1000, 60_000))
    tap.mark("one")
    tap.mark("two")
    await until(lambda: amplitude_at(bytes(heard[-1600:]), 1000) > 5000)
    assert tap.queued_ms > 55_000
    tap.clear()
    assert tap.queued_ms == 0
    assert await agent.expect(MarkReached) == MarkReached("one", cleared=True)
    assert await agent.expect(MarkReached) == MarkReached("two", cleared=True)
    await until(lambda: amplitude_at(bytes(heard[-640:]), 1000) < 20)


async def test_a_full_queue_drops_the_newest_and_says_so_once(bench: MediaBench) -> None:
    agent = bench.open()
    tap = agent.stream.open_tap(on_frames=lambda frame: None)
    for _ in range(13):
        tap.write(bytes(16 * 10_000))
    assert (await agent.expect(PlayoutOverflow)).dropped_ms >= 9_000
    assert 119_000 <= tap.queued_ms <= 120_000
    tap.write(bytes(16_000))
    await time_passes(0.02)
    assert agent.events == []


async def test_playback_queues_loops_and_stops(bench: MediaBench) -> None:
    one, other = bench.pair()
    first = one.stream.play(sine(500, 100))
    second = one.stream.play(sine(500, 40), loop=True)
    assert await one.expect(PlaybackFinished) == PlaybackFinished(first, interrupted=False, played_ms=100)
    await other.expect(FirstPacket)
    one.stream.stop_playback()
    stopped = await one.expect(PlaybackFinished)
    assert (stopped.playback_id, stopped.interrupted, stopped.why) == (second, True, "stopped")


async def test_playback_waits_for_the_connection(bench: MediaBench) -> None:
    one, other = bench.open(), bench.open()
    played = one.stream.play(sine(500, 100))
    await time_passes(0.2)
    assert one.events == []
    other.stream.connect(towards(one.stream))
    one.stream.connect(towards(other.stream))
    assert (await one.expect(PlaybackFinished)).playback_id == played
    await other.expect(FirstPacket)


async def test_hold_stops_what_is_sent_and_resume_starts_it(bench: MediaBench) -> None:
    one, other = bench.pair()
    one.stream.connect(towards(other.stream, direction="inactive"))
    one.stream.play(sine(500, 100))
    await one.expect(PlaybackFinished)
    assert one.stream.stats().packets_out == 0
    one.stream.connect(towards(other.stream))
    one.stream.play(sine(500, 100))
    await other.expect(FirstPacket)


async def test_silence_of_the_far_end_is_told(bench: MediaBench) -> None:
    one, other = bench.pair()
    one.stream.set_media_timeout(0.2)
    assert (await one.expect(MediaTimeout)).silent_s >= 0.2
    other.stream.play(sine(500, 100))
    await one.expect(FirstPacket)
    await one.expect(MediaTimeout)
    one.stream.set_media_timeout(0)


async def test_packets_of_a_stranger_are_dropped_and_counted(bench: MediaBench) -> None:
    one, other = bench.pair()
    other.stream.play(sine(500, 100))
    await one.expect(FirstPacket)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        packet = struct.pack("!BBHII", 0x80, 0, 1, 160, 99) + bytes(160)
        stranger.sendto(packet, one.stream.local)
        stranger.sendto(b"\x00" * 5, one.stream.local)
        await until(lambda: one.stream.stats().dropped_foreign == 1)
        await until(lambda: one.stream.stats().dropped_invalid == 1)
    assert one.stream.stats().ssrc_in == other.stream.stats().ssrc_out


async def test_a_port_that_another_program_holds_is_passed_over() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("127.0.0.1", 0))
        taken = holder.getsockname()[1] & ~1
        engine = MediaEngine(EngineSettings(port_min=taken, port_max=taken + 9, quarantine_s=0))
        await engine.start()
        streams = []
        with pytest.raises(PortsExhausted):
            while True:
                streams.append(engine.open_stream(lambda event: None))
        ports = [stream.local[1] for stream in streams]
        assert ports
        assert holder.getsockname()[1] not in ports
        await engine.close()


async def test_values_that_cannot_work_are_refused(bench: MediaBench) -> None:
    stream = bench.open().stream
    for remote in (
        RemoteMedia("example.com", 4000, "PCMU", 0),
        RemoteMedia("127.0.0.1", 70000, "PCMU", 0),
        RemoteMedia("127.0.0.1", 4000, "G729", 18),
        RemoteMedia("127.0.0.1", 4000, "PCMU", 128),
        RemoteMedia("127.0.0.1", 4000, "PCMU", 0, ptime_ms=200),
        RemoteMedia("127.0.0.1", 4000, "PCMU", 0, ptime_ms=-20),
    ):
        with pytest.raises(InvalidMedia):
            stream.connect(remote)
    with pytest.raises(InvalidMedia):
        stream.open_tap(sample_rate=44100, on_frames=lambda frame: None)  # type: ignore[arg-type]
    for limits in ((-1.0, 0.0), (0.0, -1.0), (float("nan"), 0.0), (1e12, 0.0)):
        with pytest.raises(InvalidMedia):
            stream.set_media_timeout(*limits)
    for settings in (
        EngineSettings(listen="localhost"),
        EngineSettings(port_min=9),
        EngineSettings(threads=0),
    ):
        with pytest.raises(InvalidMedia):
            await MediaEngine(settings).start()


async def test_a_faulty_callback_harms_no_other(bench: MediaBench) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("a fault of the application")

    one, other = bench.pair()
    frames: list[bytes] = []
    one.stream.open_tap(on_frames=fail)
    other.stream.open_tap(on_frames=frames.append)
    one.stream.on_event = fail
    await until(lambda: len(frames) > 5)
    await other.expect(FirstPacket)


@pytest.mark.parametrize("other_codec", [{}, {"codec": "L16", "payload_type": 118, "clock_rate": 16000}])
async def test_digits_of_a_party_that_sends_no_audio_are_relayed_apart(
    bench: MediaBench, other_codec: dict[str, object]
) -> None:
    caller, near = bench.open(), bench.open()
    far, callee = bench.open(near), bench.open()
    for one, other, agreed in ((caller, near, {}), (far, callee, other_codec)):
        one.stream.connect(towards(other.stream, **agreed))
        other.stream.connect(towards(one.stream, **agreed))
    near.stream.link(far.stream)
    caller.stream.send_dtmf("42#", 80, 60)
    digits = [(await callee.expect(DtmfReceived)).digit for _ in range(3)]
    assert digits == ["4", "2", "#"]
