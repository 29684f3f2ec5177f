"""Parties of two calls that are joined hear each other, whichever threads of the engine serve them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import partial

import pytest

from callcontrol.aio.media_adapter import MediaLegs
from callcontrol.aio.media_leg import MediaSettings
from callcontrol.media_policy import MediaPolicy
from media import EngineSettings, PlaybackFinished, RemoteMedia
from media.aio import MediaEngine
from tests.support.media_bench import MediaBench, amplitude_at, sine, until

A, B = 0, 1


@pytest.fixture(params=[1, 4])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[MediaEngine]:
    engine = MediaEngine(
        EngineSettings(port_min=14400, port_max=14599, quarantine_s=0, threads=request.param)
    )
    await engine.start()
    yield engine
    await engine.close()
    assert engine.stats().ports_in_use == 0


class Party:
    """A call with one leg, and the telephone at its other end."""

    def __init__(self, engine: MediaEngine) -> None:
        self.legs = MediaLegs(
            engine,
            lambda event: None,
            MediaSettings(),
            on_mark=lambda name, cleared: None,
            on_overflow=lambda dropped_ms: None,
        )
        self.phone = MediaBench(engine).open()
        self.heard = bytearray()
        found = re.search(rb"m=audio (\d+)", self.legs.descriptions.offer(A, None, MediaPolicy()))
        assert found is not None
        address, port = self.phone.stream.local
        self.phone.stream.connect(
            RemoteMedia(address=address, port=int(found[1]), codec="PCMU", payload_type=0)
        )
        sdp = f"v=0\r\no=- 1 1 IN IP4 {address}\r\ns=-\r\nc=IN IP4 {address}\r\nt=0 0\r\n"
        self.legs.descriptions.apply_answer(A, f"{sdp}m=audio {port} RTP/AVP 0\r\n".encode())
        self.phone.stream.open_tap(on_frames=self.heard.extend)

    def hears(self, freq_hz: float) -> bool:
        """Whether half a second of a tone has arrived."""
        return amplitude_at(bytes(self.heard), freq_hz) * len(self.heard) > 10000 * 8000 * 0.9


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
