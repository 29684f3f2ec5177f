"""Loading of sounds, and the queue of playbacks, over a stream that only records calls."""

import os
from pathlib import Path
from typing import Any, cast

import pytest

from media import _engine
from media.aio.audio_loader import AudioLoader, Speech
from media.aio.clip_cache import ClipCache
from media.aio.playback import Playbacks
from media.audio import (
    AudioError,
    Clip,
    Pause,
    Sound,
    SpeechUnavailable,
    WavError,
    tone,
    write_wav,
)
from media.errors import InvalidMedia, MediaError, StreamClosed


class NotedStream:
    """Records the calls of playbacks."""

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
        ("pipe.wav", "not a regular file"),
        (".", "not a regular file"),
    ):
        with pytest.raises(WavError, match=reason):
            await loader.load(tmp_path / name)
    with pytest.raises(SpeechUnavailable, match="no speech synthesizer"):
        await loader.load(Speech("hello"))
    assert "hello" not in repr(Speech("hello"))


def test_several_sources_are_one_playback() -> None:
    stream = NotedStream()
    clip = Clip(tone(300, 100))
    spoken = Clip(tone(500, 60, sample_rate=16_000), 16_000)
    playback = stream.playbacks.queue(
        [clip, Pause(50), spoken], loop=3, barge_in=["digit"], gain_db=-6.0, position_every_ms=100
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


def test_pause_and_resume_are_passed_on() -> None:
    stream = NotedStream()
    stream.playbacks.pause()
    stream.playbacks.resume()
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
def test_options_are_checked(options: dict[str, Any]) -> None:
    stream = NotedStream()
    with pytest.raises(InvalidMedia):
        stream.playbacks.queue([Clip(b"\1\0")], **options)
    assert stream.native_calls == []


@pytest.mark.parametrize("sources", [[], [Pause(60_001)], [Pause(-1)], [Clip(b"\1")], [Pause(1)] * 1025])
def test_sources_are_checked(sources: list[Sound]) -> None:
    with pytest.raises(InvalidMedia):
        NotedStream().playbacks.queue(sources)


def test_the_queue_is_bounded_and_ends_with_the_stream() -> None:
    stream = NotedStream()
    playbacks = [stream.playbacks.queue([Clip(b"\1\0")]) for _ in range(256)]
    with pytest.raises(MediaError, match="256 playbacks are already queued"):
        stream.playbacks.queue([Clip(b"\1\0")])
    stream.playbacks.abandon()
    assert all(playback.over for playback in playbacks)
    with pytest.raises(StreamClosed):
        stream.playbacks.queue([Clip(b"\1\0")])


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
    with pytest.raises(AudioError, match="cannot be resampled"):
        await AudioLoader().load(Clip(bytes(20), 1))
