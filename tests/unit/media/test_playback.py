"""The queue of playbacks, over a stream that only records calls."""

from typing import Any, cast

import pytest

from media import _engine
from media.aio.playback import StreamPlaybacks
from media.audio import (
    AudioError,
    Clip,
    Pause,
    Sound,
    tone,
)
from media.errors import InvalidMedia, MediaError, StreamClosed


class NotedStream:
    """Records the calls of playbacks."""

    def __init__(self) -> None:
        self.native_calls: list[tuple[Any, ...]] = []
        self._ids = iter(range(1, 1000))
        self.playbacks = StreamPlaybacks(cast(_engine.Stream, self), lambda: next(self._ids))

    def play(self, *call: Any) -> None:
        self.native_calls.append(("play", *call))

    def play_track(self, *call: Any) -> None:
        self.native_calls.append(("track", *call))

    def stop_track(self, track: int) -> None:
        self.native_calls.append(("stop", track))

    def pause_playback(self) -> None:
        self.native_calls.append(("pause",))

    def resume_playback(self) -> None:
        self.native_calls.append(("resume",))

    def stop_playback(self) -> None:
        self.native_calls.append(("stop",))


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


def test_a_track_has_a_queue_of_its_own() -> None:
    stream = NotedStream()
    playback = stream.playbacks.queue_track(3, [Clip(b"\1\0")], loop=True, gain_db=-20.0)
    stream.playbacks.stop_track(3)
    assert stream.native_calls == [("track", 3, playback.id, [(b"\1\0", 8000, 0)], 0, 410), ("stop", 3)]
    for track, gain_db in ((4, 0.0), (-1, 0.0), (0, 19.0)):
        with pytest.raises(InvalidMedia):
            stream.playbacks.queue_track(track, [Clip(b"\1\0")], gain_db=gain_db)
    stream.playbacks.abandon()
    assert playback.over
    stream.playbacks.stop_track(3)
    with pytest.raises(StreamClosed):
        stream.playbacks.queue_track(0, [Clip(b"\1\0")])
    assert len(stream.native_calls) == 2


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


def test_an_error_of_a_clip_is_told() -> None:
    with pytest.raises(AudioError, match="cannot be resampled"):
        Clip(bytes(20), 1).for_engine()
