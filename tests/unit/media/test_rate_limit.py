"""Counting what happens too often."""

from media.aio.agent_backpressure import RateLimit
from media.streams import frame_bytes


def test_one_more_than_the_limit_within_the_window_is_too_many() -> None:
    guard = RateLimit(3, 10.0)
    assert [guard.exceeded(now) for now in (0.0, 1.0, 2.0, 9.9)] == [False, False, False, True]


def test_old_occurrences_are_forgotten() -> None:
    guard = RateLimit(3, 10.0)
    assert not any(guard.exceeded(now) for now in (0.0, 1.0, 2.0, 10.0, 11.0, 12.0, 20.0))


def test_frame_sizes() -> None:
    assert [frame_bytes("l16", 8000), frame_bytes("l16", 16_000), frame_bytes("mulaw", 8000)] == [
        320,
        640,
        160,
    ]
