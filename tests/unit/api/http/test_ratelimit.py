"""The request limit on a clock of its own."""

from __future__ import annotations

from api.http.app import trusts
from api.http.ratelimit import Allowance, RateLimit, RateLimiter, allowances_of
from api.process.values import parse_networks
from callcontrol.models import Principal


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def take(limiter: RateLimiter, name: str, limit: int) -> RateLimit:
    return limiter.take([Allowance("key", name, limit)])


def test_a_window_begins_with_its_first_request_and_ends() -> None:
    clock = Clock()
    limiter = RateLimiter(60, monotonic=clock, wall=lambda: 1_000_000.4)
    first, second, third = (take(limiter, "a", 2) for _ in range(3))
    assert [first.allowed, second.allowed, third.allowed] == [True, True, False]
    assert [first.remaining, second.remaining, third.remaining] == [1, 0, 0]
    assert first.reset_at_epoch_s == 1_000_061
    clock.now_s += 59.5
    assert take(limiter, "a", 2).headers()["Retry-After"] == "1"
    clock.now_s += 0.5
    assert take(limiter, "a", 2).allowed


def test_names_do_not_share_a_window() -> None:
    limiter = RateLimiter(60, monotonic=Clock(), wall=lambda: 0.0)
    assert take(limiter, "a", 1).allowed
    assert take(limiter, "b", 1).allowed
    assert not take(limiter, "a", 1).allowed


def test_a_request_refused_by_one_limit_is_counted_by_none() -> None:
    limiter = RateLimiter(60, monotonic=Clock(), wall=lambda: 0.0)
    both = [Allowance("key", "a", 3), Allowance("endpoint", "a send", 1)]
    assert limiter.take(both).allowed
    for _ in range(5):
        refused = limiter.take(both)
        assert not refused.allowed
        assert (refused.policy, refused.limit, refused.remaining) == ("endpoint", 1, 0)
    assert take(limiter, "a", 3).remaining == 1


def test_headers_tell_of_the_nearest_limit_and_the_draft_ones_of_all() -> None:
    clock = Clock()
    limiter = RateLimiter(60, monotonic=clock, wall=lambda: 0.0)
    take(limiter, "a", 10)
    clock.now_s += 20
    headers = limiter.take([Allowance("key", "a", 10), Allowance("endpoint", "a send", 5)]).headers()
    assert headers["X-RateLimit-Limit"] == "5"
    assert headers["X-RateLimit-Remaining"] == "4"
    assert headers["RateLimit-Policy"] == '"endpoint";q=5;w=60, "key";q=10;w=60'
    assert headers["RateLimit"] == '"endpoint";r=4;t=60, "key";r=8;t=40'
    assert "Retry-After" not in headers


def test_of_two_limits_that_are_used_up_the_later_one_is_waited_for() -> None:
    clock = Clock()
    limiter = RateLimiter(60, monotonic=clock, wall=lambda: 0.0)
    take(limiter, "a", 2)
    clock.now_s += 30
    both = [Allowance("key", "a", 2), Allowance("endpoint", "a send", 1)]
    assert limiter.take(both).allowed
    assert limiter.take(both).headers()["Retry-After"] == "60"


def test_a_limit_that_was_lowered_has_nothing_left() -> None:
    limiter = RateLimiter(60, monotonic=Clock(), wall=lambda: 0.0)
    for _ in range(5):
        take(limiter, "a", 10)
    assert take(limiter, "a", 2).remaining == 0


def test_what_a_request_is_counted_by() -> None:
    plain = Principal("account", "key-1", "platform", frozenset())
    assert allowances_of(plain, "platform", "send", 600, None) == [Allowance("key", "key-1", 600)]
    own = Principal("account", "key-1", "platform", frozenset(), requests_per_minute=10_000)
    assert allowances_of(own, "platform", "send", 600, 60) == [
        Allowance("account", "account", 10_000),
        Allowance("endpoint", "key-1 send", 60),
    ]


def test_all_keys_of_the_assistant_are_counted_together_and_apart_from_the_platforms() -> None:
    plain = Principal("account", "key-1", "assistant", frozenset())
    other = Principal("account", "key-2", "assistant", frozenset(), assistant_requests_per_minute=5000)
    assert allowances_of(plain, "assistant", "get", 100, None) == [
        Allowance("account", "account assistant", 100)
    ]
    assert allowances_of(other, "assistant", "get", 100, None) == [
        Allowance("account", "account assistant", 5000)
    ]


def test_a_key_of_all_services_is_counted_as_what_it_asks() -> None:
    key = Principal("account", "key-1", "all", frozenset(), 7000, assistant_requests_per_minute=50)
    assert allowances_of(key, "assistant", "get", 100, None) == [
        Allowance("account", "account assistant", 50)
    ]
    assert allowances_of(key, "messaging", "get", 600, None) == [Allowance("account", "account", 7000)]
    free = Principal("account", "key-1", "all", frozenset())
    assert allowances_of(free, "tools", "get", 600, None) == [Allowance("key", "key-1", 600)]


def test_old_windows_are_forgotten() -> None:
    clock = Clock()
    limiter = RateLimiter(60, monotonic=clock, wall=lambda: 0.0)
    for index in range(2000):
        take(limiter, str(index), 1)
    clock.now_s += 61
    take(limiter, "new", 1)
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
