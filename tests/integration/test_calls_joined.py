"""Parties of two calls that are joined hear each other, whichever threads of the engine serve them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import partial

import pytest

from callcontrol.calls.aio.media.leg import MediaSettings
from callcontrol.calls.aio.media.legs import MediaLegs
from callcontrol.models.trunks import MediaPolicy
from media.aio import MediaEngine
from media.audio import Clip
from media.types import PlaybackFinished, RemoteMedia
from tests.support.media_bench import MediaBench, amplitude_at, sine, until
from tests.support.phone import engine_settings

A, B = 0, 1
_NUMBERS = {"PCMU": 0, "G722": 9}


@pytest.fixture(params=[1, 4])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[MediaEngine]:
    engine = MediaEngine(engine_settings(200, threads=request.param))
    await engine.start()
    yield engine
    await engine.close()
    assert engine.stats().ports_in_use == 0


class Party:
    """A call with one leg, and the telephone at its other end."""

    def __init__(self, engine: MediaEngine, codec: str = "PCMU") -> None:
        self.legs = MediaLegs(
            engine,
            lambda event: None,
            MediaSettings(hold_music=Clip(sine(1500, 1000))),
        )
        self.phone = MediaBench(engine).open()
        self.heard = bytearray()
        found = re.search(rb"m=audio (\d+)", self.legs.descriptions.offer(A, None, MediaPolicy((codec,))))
        assert found is not None
        address, port = self.phone.stream.local
        self.phone.stream.connect(
            RemoteMedia(
                address=address,
                port=int(found[1]),
                codec=codec,
                payload_type=_NUMBERS[codec],
                dtmf_payload_type=101,
            )
        )
        self.answer = (
            f"v=0\r\no=- 1 1 IN IP4 {address}\r\ns=-\r\nc=IN IP4 {address}\r\nt=0 0\r\n"
            f"m=audio {port} RTP/AVP {_NUMBERS[codec]} 101\r\na=rtpmap:101 telephone-event/8000\r\n"
        )
        self.legs.descriptions.apply_answer(A, self.answer.encode())
        self.phone.stream.open_tap(on_frames=self.heard.extend, sample_rate=16000 if wide(codec) else 8000)

    def hears(self, freq_hz: float) -> bool:
        """Return True if half a second of a tone has arrived."""
        return amplitude_at(bytes(self.heard), freq_hz) * len(self.heard) > 10000 * 8000 * 0.9


def wide(codec: str) -> bool:
    return codec == "G722"


def hear_each_other(one: Party, other: Party) -> bool:
    return one.hears(1100) and other.hears(700)


async def test_both_hear_each_other(engine: MediaEngine) -> None:
    parties = [Party(engine) for _ in range(4)]
    for one, other in (parties[:2], parties[2:]):
        one.legs.audio.link_across(A, other.legs.audio, A)
        one.phone.stream.play(sine(700, 1000))
        other.phone.stream.play(sine(1100, 1000))
        await one.phone.expect(PlaybackFinished)
        await until(partial(hear_each_other, one, other))
    for party in parties:
        party.legs.close_all()
        party.phone.stream.close()


async def test_one_call_may_end_before_the_other(engine: MediaEngine) -> None:
    one, other = Party(engine), Party(engine)
    one.legs.audio.link_across(A, other.legs.audio, A)
    one.legs.audio.link_across(A, other.legs.audio, B)
    one.legs.close_all()
    other.phone.stream.play(sine(700, 100))
    await other.phone.expect(PlaybackFinished)
    other.legs.close_all()
    for party in (one, other):
        party.phone.stream.close()


def hears_now(party: Party, freq_hz: float, rate_hz: int = 8000) -> bool:
    """Return True if the last quarter of a second is mostly a tone."""
    return amplitude_at(bytes(party.heard[-rate_hz // 2 :]), freq_hz, rate_hz) > 5000


def hears_silence(party: Party, size: int) -> bool:
    """Return True if more than so many bytes have come, the last half second of them silence."""
    return len(party.heard) > size and not any(party.heard[-8000:])


async def test_wideband_is_kept(engine: MediaEngine) -> None:
    """A tone above what narrowband carries, between calls that different threads may serve."""
    parties = [Party(engine, "G722") for _ in range(4)]
    for one, other in (parties[:2], parties[2:]):
        one.legs.audio.link_across(A, other.legs.audio, A)
        one.phone.stream.playbacks.queue([Clip(sine(5500, 1500, 16000), 16000)])
        await until(partial(hears_now, other, 5500, 16000))
    for party in parties:
        party.legs.close_all()
        party.phone.stream.close()


async def test_a_muted_party_is_not_heard_across_calls(engine: MediaEngine) -> None:
    """The engine relays the packets, or this process the audio between its threads."""
    parties = [Party(engine) for _ in range(4)]
    for one, other in (parties[:2], parties[2:]):
        one.legs.audio.link_across(A, other.legs.audio, A)
        one.phone.stream.play(sine(700, 1000), loop=True)
        await until(partial(hears_now, other, 700))
        one.legs.audio.mute(A, says=True, hears=False)
        await until(partial(hears_silence, other, 0))
        silent_from = len(other.heard)
        await until(partial(hears_silence, other, silent_from + 8000))
        assert not any(other.heard[silent_from:]), "audio goes on, and is silence"
        one.legs.audio.mute(A, says=False, hears=False)
        await until(partial(hears_now, other, 700))
        other.legs.audio.mute(A, says=False, hears=True)
        await until(partial(hears_silence, other, 0))
    for party in parties:
        party.legs.close_all()
        party.phone.stream.close()


async def test_hold_music_is_heard_across_calls(engine: MediaEngine) -> None:
    parties = [Party(engine) for _ in range(4)]
    for one, other in (parties[:2], parties[2:]):
        one.legs.audio.link_across(A, other.legs.audio, A)
        one.phone.stream.play(sine(700, 1000), loop=True)
        await until(partial(hears_now, other, 700))
        held = one.answer.replace("o=- 1 1", "o=- 1 2") + "a=sendonly\r\n"
        one.legs.descriptions.answer_offer(A, held.encode())
        await until(partial(hears_now, other, 1500))
        resumed = one.answer.replace("o=- 1 1", "o=- 1 3")
        one.legs.descriptions.answer_offer(A, resumed.encode())
        await until(partial(hears_now, other, 700))
    for party in parties:
        party.legs.close_all()
        party.phone.stream.close()
