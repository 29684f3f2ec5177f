"""Loading of sounds, and the player, over a stream that only takes notes."""

import asyncio
import os
from pathlib import Path
from typing import Any, cast

import pytest

from media import _engine
from media.aio.audio_loader import AudioLoader, Source, Speech
from media.aio.clip_cache import ClipCache
from media.aio.playback import Playbacks
from media.aio.player import Player
from media.aio.stream import RtpStream
from media.audio import (
    AudioError,
    Clip,
    Pause,
    SpeechError,
    SpeechUnavailable,
    WavError,
    parse_tone,
    tone,
    write_wav,
)
from media.errors import InvalidMedia, MediaError, StreamClosed
from tests.support.waiting import holds_for


class NotedStream:
    """Takes notes of what is played."""

    def __init__(self) -> None:
        self.native_calls: list[tuple[Any, ...]] = []
        self._ids = iter(range(1, 1000))
        self.playbacks = Playbacks(cast(_engine.Stream, self), lambda: next(self._ids))

    def play(self, *call: Any) -> None:
        self.native_calls.append(("play", *call))

    def pause_playback(self) -> None:
        self.native_calls.append(("pause",))

    def resume_playback(self) -> None:
        self.native_calls.append(("resume",))

    def stop_playback(self) -> None:
        self.native_calls.append(("stop",))


class SlowSynthesizer:
    """Speaks a tone, once it is let."""

    def __init__(self) -> None:
        self.may_speak = asyncio.Event()

    async def speak(self, text: str, language: str, *, keep: bool = True) -> Clip:
        await self.may_speak.wait()
        if text == "broken":
            raise SpeechError("no")
        return Clip(tone(500, len(text), sample_rate=16_000), 16_000)


def player(synthesizer: SlowSynthesizer | None = None) -> tuple[Player, NotedStream]:
    stream = NotedStream()
    return Player(cast(RtpStream, stream), AudioLoader(synthesizer)), stream


async def test_files_are_brought_to_the_engine_s_form_and_kept_until_they_change(tmp_path: Path) -> None:
    path = tmp_path / "music.wav"
    path.write_bytes(write_wav(Clip(tone(440, 200, sample_rate=44_100), 44_100)))
    loader = AudioLoader()
    first = await loader.load(path)
    assert isinstance(first, Clip)
    assert (first.sample_rate, first.channels, first.duration_ms) == (16_000, 1, 200)
    assert await loader.load(path) is first
    path.write_bytes(write_wav(Clip(tone(440, 300))))
    changed = await loader.load(path)
    assert isinstance(changed, Clip) and changed.duration_ms == 300
    assert await loader.load(Pause(20)) == Pause(20)
    stereo = await loader.load(Clip(bytes(3200), 8000, 2))
    assert stereo == Clip(bytes(1600))


async def test_what_cannot_be_loaded_is_refused_with_its_name(tmp_path: Path) -> None:
    loader = AudioLoader()
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    os.mkfifo(tmp_path / "pipe.wav")
    for name, reason in (
        ("bad.wav", "bad.wav cannot be played: the file is not a WAV file"),
        ("none.wav", "none.wav cannot be read: No such file"),
        ("pipe.wav", "no regular file"),
        (".", "no regular file"),
    ):
        with pytest.raises(WavError, match=reason):
            await loader.load(tmp_path / name)
    with pytest.raises(SpeechUnavailable, match="nothing that speaks"):
        await loader.load(Speech("hello"))
    assert "hello" not in repr(Speech("hello"))


async def test_several_sources_are_one_playback() -> None:
    synthesizer = SlowSynthesizer()
    synthesizer.may_speak.set()
    subject, stream = player(synthesizer)
    clip = Clip(tone(300, 100))
    playback = await subject.play(
        [clip, Pause(50), Speech("x" * 60)], loop=3, barge_in=["digit"], gain_db=-6.0, position_every_ms=100
    )
    (call,) = stream.native_calls
    name, playback_id, clips, plays, gain, every_ms, by_digit, by_speech = call
    assert (name, playback_id, plays, every_ms, by_digit, by_speech) == (
        "play",
        playback.id,
        3,
        100,
        True,
        False,
    )
    assert gain == pytest.approx(2053, abs=1)
    assert [(len(pcm), rate, pause_ms) for pcm, rate, pause_ms in clips] == [
        (1600, 8000, 0),
        (0, 8000, 50),
        (1920, 16_000, 0),
    ]


async def test_the_order_is_that_of_asking_however_long_loading_takes() -> None:
    synthesizer = SlowSynthesizer()
    subject, stream = player(synthesizer)
    slow = asyncio.create_task(subject.play(Speech("slow")))
    await asyncio.sleep(0)
    quick = asyncio.create_task(subject.play(Clip(b"\1\0")))
    await holds_for(0.02, lambda: not stream.native_calls)
    synthesizer.may_speak.set()
    one, two = await slow, await quick
    assert [call[1] for call in stream.native_calls] == [one.id, two.id]


async def test_what_is_loading_when_all_is_stopped_is_never_heard() -> None:
    synthesizer = SlowSynthesizer()
    subject, stream = player(synthesizer)
    loading = asyncio.create_task(subject.play(Speech("late")))
    await asyncio.sleep(0)
    subject.stop()
    synthesizer.may_speak.set()
    playback = await loading
    end = await playback.finished()
    assert (end.why, end.interrupted, end.played_ms) == ("stopped", True, 0)
    assert stream.native_calls == [("stop",)]


async def test_a_source_that_fails_plays_nothing_of_the_others() -> None:
    synthesizer = SlowSynthesizer()
    synthesizer.may_speak.set()
    subject, stream = player(synthesizer)
    with pytest.raises(SpeechError):
        await subject.play([Clip(b"\1\0"), Speech("broken")])
    assert stream.native_calls == []
    # The next has its turn.
    await subject.play(Clip(b"\1\0"))
    assert len(stream.native_calls) == 1


async def test_tones_are_heard_once_and_then_repeated() -> None:
    subject, stream = player()
    subject.tone(parse_tone("!400/100,!0/100,350+440"))
    subject.tone(parse_tone("!400/100"))
    assert [(len(call[2][0][0]), call[3]) for call in stream.native_calls] == [
        (3200, 1),
        (16_000, 0),
        (1600, 1),
    ]


async def test_pause_and_resume_are_passed_on() -> None:
    subject, stream = player()
    subject.pause()
    subject.resume()
    assert stream.native_calls == [("pause",), ("resume",)]


@pytest.mark.parametrize(
    "options",
    [
        {"loop": 0},
        {"loop": -1},
        {"barge_in": ["cough"]},
        {"gain_db": 19.0},
        {"gain_db": -61.0},
        {"gain_db": float("nan")},
        {"position_every_ms": 19},
        {"position_every_ms": -1},
    ],
)
async def test_options_are_checked(options: dict[str, Any]) -> None:
    subject, stream = player()
    with pytest.raises(InvalidMedia):
        await subject.play(Clip(b"\1\0"), **options)
    assert stream.native_calls == []


@pytest.mark.parametrize("sources", [[], [Pause(60_001)], [Pause(-1)], [Clip(b"\1")], [Pause(1)] * 1025])
async def test_sources_are_checked(sources: list[Source]) -> None:
    subject, _ = player()
    with pytest.raises(InvalidMedia):
        await subject.play(sources)


async def test_the_queue_is_bounded_and_ends_with_the_stream() -> None:
    subject, stream = player()
    playbacks = [await subject.play(Clip(b"\1\0")) for _ in range(256)]
    with pytest.raises(MediaError, match="256 playbacks wait"):
        await subject.play(Clip(b"\1\0"))
    stream.playbacks.abandon()
    assert all(playback.over for playback in playbacks)
    with pytest.raises(StreamClosed):
        await subject.play(Clip(b"\1\0"))


def test_the_cache_is_bounded_and_forgets_what_was_not_asked_for_longest() -> None:
    cache = ClipCache(1000)
    clips = {name: Clip(bytes(200)) for name in "abcde"}
    for name, clip in clips.items():
        cache.put(name, clip)
    assert cache.get("a") is clips["a"]
    cache.put("f", Clip(bytes(200)))
    assert cache.get("b") is None
    assert cache.get("a") is clips["a"]
    cache.put("large", Clip(bytes(252)))
    assert cache.get("large") is None
    cache.put("a", Clip(bytes(100)))
    assert cache.size_bytes == 900


async def test_an_error_of_a_clip_is_told() -> None:
    with pytest.raises(AudioError, match="cannot be brought"):
        await AudioLoader().load(Clip(bytes(20), 1))
