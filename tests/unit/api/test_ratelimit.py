"""The request limit on a clock of its own."""

from __future__ import annotations

from api.app import trusts
from api.ratelimit import RateLimiter
from api.values import parse_networks


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_window_begins_with_its_first_request_and_ends() -> None:
    clock = Clock()
    limiter = RateLimiter(2, 60, monotonic=clock, wall=lambda: 1_000_000.4)
    first, second, third = limiter.take("a"), limiter.take("a"), limiter.take("a")
    assert [first.allowed, second.allowed, third.allowed] == [True, True, False]
    assert [first.remaining, second.remaining, third.remaining] == [1, 0, 0]
    assert first.reset_at_epoch_s == 1_000_061
    clock.now_s += 59.5
    assert limiter.take("a").headers()["Retry-After"] == "1"
    clock.now_s += 0.5
    assert limiter.take("a").allowed


def test_names_do_not_share_a_window() -> None:
    limiter = RateLimiter(1, 60, monotonic=Clock(), wall=lambda: 0.0)
    assert limiter.take("a").allowed
    assert limiter.take("b").allowed
    assert not limiter.take("a").allowed


def test_old_windows_are_forgotten() -> None:
    clock = Clock()
    limiter = RateLimiter(1, 60, monotonic=clock, wall=lambda: 0.0)
    for index in range(2000):
        limiter.take(str(index))
    clock.now_s += 61
    limiter.take("new")
    assert len(limiter) == 1


def test_trusted_sources() -> None:
    trusted = trusts(parse_networks("127.0.0.0/8, 2001:db8::/32"))
    assert trusted("127.0.0.1")
    assert trusted("2001:db8::1")
    assert not trusted("192.0.2.1")
    assert not trusted("::1")
    assert not trusted("fe80::1%eth0")
    assert not trusted(None)
    assert not trusted("unix")
    assert not trusts(())("127.0.0.1")
