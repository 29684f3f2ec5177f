"""Conferences over loopback: parties that each send a tone of their own, and what they hear of the others."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from media.aio import ActiveTalker, Conference, ConferenceEvent, MediaEngine, MemberLeft
from media.audio import read_wav
from media.errors import InvalidMedia, MediaError, StreamClosed
from media.types import PlaybackFinished, RecordingSettings
from tests.support.media_bench import MediaBench, amplitude_at, sine, towards, until
from tests.support.phone import engine_settings
from tests.support.waiting import time_passes

# So that the sum of all is not limited; codecs and concealment on a busy machine take their share.
SENT = 4000
LOUD = 2400
FAINT = 250
WINDOW_BYTES = 2 * 2400

PCMU: dict[str, object] = {"codec": "PCMU", "payload_type": 0}
PCMA: dict[str, object] = {"codec": "PCMA", "payload_type": 8}
G722: dict[str, object] = {"codec": "G722", "payload_type": 9}
OPUS: dict[str, object] = {"codec": "OPUS", "payload_type": 111, "clock_rate": 48000}
LONG: dict[str, object] = {"codec": "PCMU", "payload_type": 0, "ptime_ms": 30}


class Party:
    """A far end with a tone of its own, and the stream that takes part for it."""

    def __init__(self, bench: MediaBench, freq_hz: int, agreed: dict[str, object] = PCMU) -> None:
        self.far, self.near = bench.open(), bench.open()
        self.far.stream.connect(towards(self.near.stream, **agreed))
        self.near.stream.connect(towards(self.far.stream, **agreed))
        self.stream = self.near.stream
        self.freq_hz = freq_hz
        self.heard = bytearray()
        self.far.stream.open_tap(on_frames=self._hear)
        self.far.stream.play(sine(freq_hz, 1000, amplitude=SENT), loop=True)

    def _hear(self, audio: bytes) -> None:
        self.heard += audio
        del self.heard[:-WINDOW_BYTES]

    def hears(self, other: Party) -> bool:
        """Return True if a party is heard, all the last 300 ms."""
        return len(self.heard) == WINDOW_BYTES and amplitude_at(bytes(self.heard), other.freq_hz) > LOUD

    def misses(self, other: Party) -> bool:
        """Return True if nothing of a party was heard for 300 ms."""
        return len(self.heard) == WINDOW_BYTES and amplitude_at(bytes(self.heard), other.freq_hz) < FAINT

    def hears_just(self, others: Iterable[Party], of: Iterable[Party]) -> bool:
        """Return True if these are heard, and no others."""
        wanted = set(others)
        return all(self.hears(other) if other in wanted else self.misses(other) for other in of)


class Stage:
    """An engine of two threads, and a conference with what it told."""

    def __init__(self, engine: MediaEngine) -> None:
        self.bench = MediaBench(engine)
        self.events: list[ConferenceEvent] = []
        self.conference: Conference = engine.open_conference(self.events.append)

    def parties(self, *agreed: dict[str, object]) -> list[Party]:
        """Parties with those codecs, at 400 Hz and every 300 Hz above."""
        return [Party(self.bench, 400 + 300 * n, each) for n, each in enumerate(agreed)]

    def told(self, event: ConferenceEvent) -> bool:
        """Return True if an event was reported."""
        return event in self.events


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    engine = MediaEngine(engine_settings(400, threads=2))
    await engine.start()
    try:
        yield Stage(engine)
        assert engine.stats().events_dropped == 0
    finally:
        await engine.close()
    assert engine.stats().ports_in_use == 0


async def test_all_hear_all_others_whatever_their_codecs(stage: Stage) -> None:
    parties = stage.parties(PCMU, G722, OPUS, PCMA, LONG)
    for party in parties:
        stage.conference.add(party.stream)
    await until(
        lambda: all(one.hears_just([p for p in parties if p is not one], parties) for one in parties), 15
    )
    assert stage.conference.members == tuple(party.stream for party in parties)


async def test_listeners_and_whispers_are_heard_by_whom_they_should_be(stage: Stage) -> None:
    one, other, listener, coach = parties = stage.parties(PCMU, PCMU, PCMA, G722)
    conference = stage.conference
    conference.add(one.stream)
    conference.add(other.stream)
    conference.add(listener.stream, listen_only=True)
    conference.add(coach.stream, whisper_to=[one.stream])
    await until(
        lambda: (
            one.hears_just([other, coach], parties)
            and other.hears_just([one], parties)
            and listener.hears_just([one, other], parties)
            and coach.hears_just([one, other], parties)
        ),
        15,
    )
    conference.change(coach.stream)
    conference.change(listener.stream, whisper_to=[coach.stream, other.stream])
    conference.change(one.stream, muted=True)
    await until(
        lambda: (
            one.hears_just([other, coach], parties)
            and other.hears_just([coach, listener], parties)
            and coach.hears_just([other, listener], parties)
        ),
        15,
    )
    await until(lambda: conference.levels()[one.stream] > 90)
    assert conference.levels()[other.stream] < 30


async def test_who_leaves_hears_and_says_nothing_more(stage: Stage) -> None:
    one, other, third = parties = stage.parties(PCMU, PCMU, PCMU)
    conference = stage.conference
    for party in parties:
        conference.add(party.stream)
    await until(lambda: one.hears_just([other, third], parties), 15)
    conference.remove(other.stream)
    conference.remove(other.stream)
    await until(lambda: one.hears_just([third], parties) and other.hears_just([], parties), 15)
    third.stream.close()
    await until(lambda: stage.told(MemberLeft(third.stream)))
    assert conference.members == (one.stream,)
    await until(lambda: one.hears_just([], parties), 15)
    conference.add(other.stream)
    await until(lambda: one.hears_just([other], parties), 15)
    conference.close()
    conference.close()
    await until(lambda: one.hears_just([], parties), 15)
    assert not one.stream.closed


async def test_twenty_members_join_and_leave_in_any_order(stage: Stage) -> None:
    chance = random.Random(20)
    parties = [Party(stage.bench, 300 + 150 * n) for n in range(20)]
    conference = stage.conference
    for _ in range(200):
        party = chance.choice(parties)
        if party.stream in conference.members:
            conference.remove(party.stream)
        else:
            conference.add(party.stream, listen_only=chance.random() < 0.3)
        if chance.random() < 0.2:
            await time_passes(chance.random() / 20)
    for party in parties:
        conference.remove(party.stream)
    for party in parties[:2]:
        conference.add(party.stream)
    one, other = parties[:2]
    await until(lambda: one.hears_just([other], parties) and other.hears_just([one], parties), 15)
    for party in parties[2:]:
        assert party.stream not in conference.members


async def test_playback_is_heard_by_all_and_recorded(stage: Stage, tmp_path: Path) -> None:
    one, other = stage.parties(PCMU, PCMU)
    conference = stage.conference
    conference.add(one.stream)
    conference.add(other.stream)
    await until(lambda: one.hears(other), 15)
    recording = conference.record(str(tmp_path / "conference.wav"))
    playback = conference.play(sine(2000, 1500, amplitude=SENT))
    await until(lambda: amplitude_at(bytes(one.heard), 2000) > LOUD, 15)
    assert amplitude_at(bytes(other.heard), 2000) > LOUD / 2
    assert (await playback.finished()).why == "ended"
    assert any(isinstance(event, PlaybackFinished) for event in stage.events)
    conference.close()
    assert (await recording.wait()).error is None
    clip = read_wav((tmp_path / "conference.wav").read_bytes())
    assert clip.sample_rate == 16000
    middle = clip.pcm[len(clip.pcm) // 2 // 2 * 2 :][:16000]
    for freq_hz in (400, 700, 2000):
        assert amplitude_at(middle, freq_hz, 16000) > LOUD / 2


async def test_who_talks_is_told(stage: Stage) -> None:
    one, other = stage.parties(PCMU, PCMU)
    one.far.stream.stop_playback()
    stage.conference.add(one.stream)
    stage.conference.add(other.stream)
    await until(lambda: stage.told(ActiveTalker(other.stream)), 15)
    other.far.stream.stop_playback()
    one.far.stream.play(sine(400, 1000), loop=True)
    await until(lambda: stage.told(ActiveTalker(one.stream)), 15)
    assert stage.conference.talker is one.stream


async def test_what_makes_no_sense_is_refused(stage: Stage, tmp_path: Path) -> None:
    one, other = stage.parties(PCMU, PCMU)
    conference = stage.conference
    conference.add(one.stream)
    elsewhere = stage.bench.engine.open_conference(lambda event: None, sample_rate=8000)
    with pytest.raises(MediaError, match="conference already"):
        elsewhere.add(one.stream)
    with pytest.raises(MediaError, match="not a member"):
        conference.change(other.stream)
    with pytest.raises(MediaError, match="not a member"):
        conference.add(other.stream, whisper_to=[other.stream])
    with pytest.raises(InvalidMedia, match="one channel"):
        conference.record(str(tmp_path / "stereo.wav"), RecordingSettings(channels=2))
    with pytest.raises(InvalidMedia, match="rate"):
        # As a caller without types may ask for it.
        stage.bench.engine.open_conference(lambda event: None, sample_rate=44100)  # type: ignore[arg-type]
    other.stream.close()
    with pytest.raises(StreamClosed):
        conference.add(other.stream)
    conference.close()
    with pytest.raises(StreamClosed):
        conference.add(one.stream)
