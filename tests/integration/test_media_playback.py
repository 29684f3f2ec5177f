"""Playback as a far end sees it: packets of a plain socket, judged by their timestamps and their spectrum."""

from __future__ import annotations

import asyncio
import math
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from fixtures.prompts import DIRECTORY
from media.aio import MediaEngine
from media.audio import (
    TONE_PLANS,
    Clip,
    Pause,
    PromptLibrary,
    dtmf,
    mulaw_to_l16,
    read_wav,
    tone,
    write_wav,
)
from media.types import DtmfReceived, PlaybackFinished, PlaybackPosition, RemoteMedia
from tests.support.levels import level_dbfs, tone_level_dbfs
from tests.support.media_bench import MediaBench, Told, sine, until
from tests.support.phone import engine_settings
from tests.support.waiting import time_passes

_FRAME = 160
_QUIET_DBFS = -60.0


@dataclass
class Heard:
    """One packet: its RTP timestamp and its sound."""

    timestamp: int
    pcm: bytes

    @property
    def silent(self) -> bool:
        """True for silence."""
        return level_dbfs(self.pcm) < _QUIET_DBFS


class Peer(asyncio.DatagramProtocol):
    """A far end that keeps every packet, and presses keys."""

    def __init__(self) -> None:
        self.packets: list[Heard] = []
        self.sequence = 100
        self.transport: asyncio.DatagramTransport
        self.engine_port = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if 192 <= data[1] <= 223:
            return
        timestamp = struct.unpack_from("!I", data, 4)[0]
        self.packets.append(Heard(timestamp, mulaw_to_l16(data[12:])))

    def press(self, key: int, *, up: bool = False) -> None:
        """One packet of a telephone event: the key is down, or up again."""
        self.sequence += 1
        head = struct.pack("!BBHII", 0x80, 101, self.sequence, 5000, 77)
        event = struct.pack("!BBH", key, 0x8A if up else 0x0A, 1600 if up else 160)
        self.transport.sendto(head + event, ("127.0.0.1", self.engine_port))

    def sound(self, first: int = 0, last: int | None = None) -> bytes:
        """Return the received audio from one packet to another."""
        return b"".join(packet.pcm for packet in self.packets[first:last])


@pytest.fixture
async def bench() -> AsyncIterator[MediaBench]:
    engine = MediaEngine(engine_settings(200))
    await engine.start()
    try:
        yield MediaBench(engine)
    finally:
        await engine.close()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(Peer, ("127.0.0.1", 0), family=socket.AF_INET)
    yield protocol
    transport.close()


@pytest.fixture
def told(bench: MediaBench, peer: Peer) -> Iterator[Told]:
    """A stream that sends to the peer."""
    told = bench.open()
    port = peer.transport.get_extra_info("sockname")[1]
    told.stream.connect(RemoteMedia("127.0.0.1", port, "PCMU", 0, dtmf_payload_type=101))
    peer.engine_port = told.stream.local[1]
    yield told
    told.stream.close()


def unbroken(packets: list[Heard]) -> bool:
    """Return True if every packet follows the one before without a gap in RTP time."""
    return all((b.timestamp - a.timestamp) & 0xFFFFFFFF == _FRAME for a, b in pairwise(packets))


async def test_a_sequence_is_heard_whole_and_in_order(told: Told, peer: Peer) -> None:
    playback = told.stream.playbacks.queue(
        [Clip(sine(500, 200)), Pause(100), Clip(sine(900, 200, rate_hz=16_000), 16_000)], loop=2
    )
    end = await playback.finished()
    assert (end.why, end.interrupted, end.played_ms) == ("ended", False, 1000)
    assert await told.expect(PlaybackFinished) == end
    await until(lambda: len(peer.packets) >= 50)
    assert unbroken(peer.packets)
    for start in (0, 25):
        assert tone_level_dbfs(peer.sound(start + 1, start + 9), 500) == pytest.approx(-8.7, abs=0.5)
        assert all(packet.silent for packet in peer.packets[start + 11 : start + 14])
        assert tone_level_dbfs(peer.sound(start + 16, start + 24), 900) == pytest.approx(-8.7, abs=0.5)


async def test_a_loop_has_no_seam_and_ends_by_an_order(told: Told, peer: Peer) -> None:
    # 400 Hz and a round of 50 ms: twenty whole periods.
    playback = told.stream.playbacks.queue([Clip(sine(400, 50))], loop=True)
    await until(lambda: len(peer.packets) >= 40)
    told.stream.stop_playback()
    assert (await playback.finished()).why == "stopped"
    assert playback.over
    # All but the last frames: one long tone, so its level measured over all of it is that of a frame.
    assert tone_level_dbfs(peer.sound(0, 38), 400) == pytest.approx(-8.7, abs=0.2)
    assert unbroken(peer.packets)


async def test_stop_is_silence_within_20_ms_of_rtp_time_and_fades(told: Told, peer: Peer) -> None:
    playback = told.stream.playbacks.queue([Clip(sine(1000, 5000))], gain_db=-6.0)
    await until(lambda: len(peer.packets) >= 10)
    # The linked silence makes the time after the stop visible: a tap keeps the stream sending.
    told.stream.open_tap(on_frames=lambda frame: None)
    heard = len(peer.packets)
    told.stream.stop_playback()
    end = await playback.finished()
    await until(lambda: len(peer.packets) >= heard + 15)
    loud = [n for n, packet in enumerate(peer.packets) if not packet.silent]
    assert unbroken(peer.packets)
    assert loud == list(range(len(loud)))
    last = struct.unpack(f"<{_FRAME}h", peer.packets[loud[-1]].pcm)
    # The last frame that is heard holds the fade of 5 ms and nothing after it.
    assert max(map(abs, last[40:])) <= 8
    assert max(map(abs, last[30:40])) < max(map(abs, last[:10]))
    # What was sent is what was told: within the frame that was being made.
    assert abs(end.played_ms - (len(loud) - 1) * 20) <= 20


async def test_pause_is_silence_and_resume_goes_on_where_it_was(told: Told, peer: Peer) -> None:
    playback = told.stream.playbacks.queue([Clip(sine(1000, 1000))])
    await until(lambda: len(peer.packets) >= 10)
    told.stream.playbacks.pause()
    await until(lambda: len(peer.packets) >= 30 and all(packet.silent for packet in peer.packets[-10:]))
    assert not playback.over
    told.stream.playbacks.resume()
    end = await playback.finished()
    assert (end.why, end.played_ms) == ("ended", 1000)
    await until(lambda: sum(not packet.silent for packet in peer.packets) >= 50)
    assert unbroken(peer.packets)
    assert sum(not packet.silent for packet in peer.packets) <= 52


async def test_a_digit_ends_at_its_beginning_what_asked_for_it(told: Told, peer: Peer) -> None:
    first = told.stream.playbacks.queue([Clip(sine(600, 3000))], barge_in=["digit"])
    second = told.stream.playbacks.queue([Clip(sine(700, 3000))], barge_in=["digit", "speech"])
    third = told.stream.playbacks.queue([Clip(sine(800, 400))], barge_in=["speech"])
    await until(lambda: len(peer.packets) >= 10)
    peer.press(7)
    end = await first.finished()
    assert (end.why, end.digit) == ("digit", "7")
    assert 180 <= end.played_ms < 3000
    assert await second.finished() == PlaybackFinished(second.id, True, "digit", "7", 0)
    # The key is still down: nothing was reported yet but the end of the playback.
    assert not any(isinstance(event, DtmfReceived) for event in told.events)
    assert (await third.finished()).why == "ended"
    peer.press(7, up=True)
    assert (await told.expect(DtmfReceived)).digit == "7"
    await until(lambda: len(peer.packets) * 20 >= end.played_ms + 400)
    assert tone_level_dbfs(peer.sound(-18, -2), 800) == pytest.approx(-8.7, abs=0.5)
    assert tone_level_dbfs(peer.sound(), 700) < -35
    assert unbroken(peer.packets)


async def test_a_key_that_is_let_go_later_does_not_end_what_came_after(told: Told, peer: Peer) -> None:
    first = told.stream.playbacks.queue([Clip(sine(600, 3000))], barge_in=["digit"])
    await until(lambda: len(peer.packets) >= 5)
    peer.press(1)
    await first.finished()
    second = told.stream.playbacks.queue([Clip(sine(700, 200))], barge_in=["digit"])
    peer.press(1, up=True)
    assert (await second.finished()).why == "ended"


async def test_the_position_is_told(told: Told, peer: Peer) -> None:
    playback = told.stream.playbacks.queue([Clip(sine(600, 500))], position_every_ms=100)
    await told.expect(PlaybackPosition)
    assert playback.played_ms == 100
    await playback.finished()
    positions = [event.played_ms for event in told.events if isinstance(event, PlaybackPosition)]
    assert positions == [200, 300, 400, 500]
    assert playback.played_ms == 500


async def test_who_waits_learns_that_the_stream_was_closed(told: Told) -> None:
    playback = told.stream.playbacks.queue([Clip(sine(600, 5000))])
    waiter = asyncio.create_task(playback.finished())
    await asyncio.sleep(0)
    told.stream.close()
    assert (await waiter).why == "stopped"


@pytest.mark.parametrize(
    "agreed",
    [
        {"codec": "PCMA", "payload_type": 8},
        {"codec": "G722", "payload_type": 9},
        {"codec": "L16", "payload_type": 97, "clock_rate": 16_000},
        {"codec": "PCMU", "payload_type": 0, "ptime_ms": 30},
    ],
    ids=["PCMA", "G722", "L16", "30ms"],
)
async def test_files_and_speech_are_played_at_every_rate_and_codec(
    bench: MediaBench, tmp_path: Path, agreed: dict[str, object]
) -> None:
    path = tmp_path / "music.wav"
    path.write_bytes(write_wav(Clip(tone(1200, 600, sample_rate=44_100), 44_100)))
    one, other = bench.pair(**agreed)
    heard = bytearray()
    other.stream.open_tap(sample_rate=16_000, on_frames=heard.extend)
    music = read_wav(path.read_bytes()).for_engine()
    playback = one.stream.playbacks.queue([music, Pause(100), Clip(tone(600, 600))])
    end = await playback.finished()
    assert (end.why, end.played_ms) == ("ended", 1300)
    await until(
        lambda: tone_level_dbfs(bytes(heard[-32 * 400 :]), 600, 16_000) < -60 and len(heard) > 32 * 1300
    )
    # What was heard of each, found by spectrum wherever it lies: 600 ms of a tone that peaks at -10 dB.
    for frequency in (1200, 600):
        share = 20 * math.log10(32 * 600 / len(heard))
        assert tone_level_dbfs(bytes(heard), frequency, 16_000) == pytest.approx(-10 + share, abs=1.5)


async def test_a_call_progress_tone_goes_on_until_it_is_stopped(told: Told, peer: Peer) -> None:
    congestion = Clip(TONE_PLANS["in"].tone("congestion").cycle_pcm(8000))
    playback = told.stream.playbacks.queue([congestion], loop=True)
    await until(lambda: len(peer.packets) >= 60)
    assert not playback.over
    told.stream.playbacks.stop()
    assert (await playback.finished()).why == "stopped"
    loud = [not packet.silent for packet in peer.packets[:50]]
    # 250 ms of tone, 250 of silence, twice; frames of 20 ms share an edge now and then.
    assert 24 <= sum(loud) <= 28
    assert loud[:12] == [True] * 12
    assert loud[13:24] == [False] * 11
    assert unbroken(peer.packets)


async def test_speech_ends_what_asked_for_it_and_a_tone_does_not(bench: MediaBench) -> None:
    prompter, caller = bench.pair()
    welcome = Clip(PromptLibrary(DIRECTORY).get("en/speech-sample"))
    prompt = prompter.stream.playbacks.queue([Clip(sine(400, 10_000))], barge_in=["speech"])
    deaf = prompter.stream.playbacks.queue([Clip(sine(400, 200))], barge_in=["digit"])
    # Music or a ringing tone of the far end is no speech.
    caller.stream.playbacks.queue([Clip(sine(440, 600))])
    await caller.expect(PlaybackFinished)
    assert not prompt.over
    said = caller.stream.playbacks.queue([Pause(200), welcome])
    end = await prompt.finished()
    assert (end.why, end.digit) == ("speech", None)
    assert not said.over, "the caller is still speaking"
    assert (await deaf.finished()).why == "ended"


async def test_a_key_in_the_audio_ends_what_asked_for_it(bench: MediaBench) -> None:
    prompter, caller = bench.pair(dtmf_tones=True, dtmf_payload_type=None)
    prompt = prompter.stream.playbacks.queue([Clip(sine(300, 10_000))], barge_in=["digit"])
    await time_passes(0.2)
    caller.stream.playbacks.queue([Clip(dtmf("5", duration_ms=400))])
    end = await prompt.finished()
    assert (end.why, end.digit) == ("digit", "5")
    assert (await prompter.expect(DtmfReceived)).digit == "5"


@pytest.mark.parametrize(
    ("clips", "gain", "reason"),
    [
        ([(b"", 8000)], 4096, "samples, a rate and a pause"),
        ([(b"", 44_100, 0)], 4096, "must be 8000 or 16000"),
        ([(b"", 8000, 60_001)], 4096, "at most 60 s"),
        ([(b"", 8000, 0)] * 1025, 4096, "at most 1024"),
        ([(b"", 8000, 0)], 32_769, "at most 18 dB"),
        ([(b"", 8000, 0)], -1, "at most 18 dB"),
    ],
)
async def test_the_engine_checks_what_it_is_given(
    told: Told, clips: list[tuple[bytes, int, int]], gain: int, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        told.stream.native.play(1, clips, 1, gain, 0, False, False)
