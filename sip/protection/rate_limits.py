"""
Rate limits and bans by source, applied before a message is parsed.

A source is *trusted* when the application trusts its address (a gateway, a trusted network) or when it takes
part in something: we sent it a request, it sent a request within a dialog, its credentials were correct. Any
other source is *unknown*: it has a small token bucket of datagrams, gets at most one answer per interval, and
its score leads to a ban.

Source addresses of datagrams can be forged. Traffic alone therefore never counts against a trusted source:
otherwise an attacker could have a carrier banned.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address

_SCANNED_BYTES = 2048
"""Length of a message's head that is searched for the name of a scanner."""
_IPV6_SOURCE_BITS = 64
_RECHECK_S = 1.0
"""Interval of asking the application again about an unknown source: it may have become a gateway."""
_AGENT = re.compile(rb"\n(?:user-agent|server)[ \t]*:([^\r\n]{0,200})", re.IGNORECASE)
_SCANNERS = re.compile(
    rb"friendly-(?:scanner|request)|sip-?vicious|sundayddr|sip-?scan|sipcli|pplsip|sipsak|sipptk|iwar\b"
    rb"|vax(?:sip|ip)useragent|\bsv(?:map|war|crack|report)|\bsmap\b|\bgulp\b|masscan|zgrab|\bnmap\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionSettings:
    """
    Limits of unknown sources, and bounds of the memory about sources.

    `rate_per_s` and `burst` limit the datagrams of one unknown source, the `crowd` ones those of all unknown
    sources together. A datagram over the rate scores 1, a malformed one `malformed_score`, a refused one 1.
    At `ban_score` the source is banned for `ban_s` (after wrong passwords `auth_ban_s`), twice as long each
    time, `max_ban_s` at most. With `answer_unknown_sources` False unknown sources get no answer.
    """

    answer_unknown_sources: bool = True
    answer_interval_s: float = 10.0
    rate_per_s: float = 10.0
    burst: int = 20
    crowd_rate_per_s: float = 500.0
    crowd_burst: int = 1000
    malformed_score: float = 5.0
    ban_score: float = 100.0
    score_decay_per_s: float = 0.5
    ban_s: float = 60.0
    max_ban_s: float = 3600.0
    ban_memory_s: float = 86_400.0
    slow_after_failures: int = 5
    slow_s: float = 1.0
    max_auth_failures: int = 20
    auth_memory_s: float = 600.0
    auth_ban_s: float = 300.0
    trust_s: float = 14_400.0
    max_sources: int = 10_000


@dataclass(frozen=True, slots=True)
class Ban:
    """Report of a ban: its source, reason, duration, and the number of bans so far."""

    source: str
    reason: str
    for_s: float
    count: int


@dataclass(slots=True)
class _Bucket:
    """Token bucket; each message uses one token."""

    tokens: float
    at: float

    def use(self, rate_per_s: float, burst: float, now: float) -> bool:
        """Use one token; False when there is none."""
        tokens = min(burst, self.tokens + (now - self.at) * rate_per_s)
        self.at = now
        if tokens < 1.0:
            self.tokens = tokens
            return False
        self.tokens = tokens - 1.0
        return True


@dataclass(slots=True)
class _UnknownSource(_Bucket):
    """State of an unknown source."""

    scored_at: float
    checked_at: float
    score: float = 0.0
    answered_at: float | None = None


@dataclass(slots=True)
class _BanRecord:
    """A source that is, or was, banned."""

    count: int = 0
    until: float = 0.0
    checked_at: float = 0.0


@dataclass(slots=True)
class _Failures:
    """Wrong passwords in a row."""

    count: int = 0
    at: float = 0.0


class Protection:
    """
    Admits or rejects messages by source; no I/O, no clock, bounded memory.

    Fast path of the caller: a host in `trusted` needs no further check. The caller must call
    `refresh_trusted` regularly, since the application may withdraw its trust. `is_trusted` asks the
    application; `on_ban` gets each ban.
    """

    def __init__(
        self,
        settings: ProtectionSettings,
        is_trusted: Callable[[str], bool],
        on_ban: Callable[[Ban], None] | None = None,
    ) -> None:
        self.settings = settings
        self.trusted: set[str] = set()
        """Trusted hosts, as written in the socket's address."""
        self.rejected: Counter[str] = Counter()
        """Messages that were not served, by reason."""
        self._is_trusted = is_trusted
        self._on_ban = on_ban
        self._trusted_until: OrderedDict[str, float] = OrderedDict()
        self._unknown: OrderedDict[str, _UnknownSource] = OrderedDict()
        self._bans: OrderedDict[str, _BanRecord] = OrderedDict()
        self._failures: OrderedDict[str, _Failures] = OrderedDict()
        self._crowd = _Bucket(settings.crowd_burst, 0.0)

    # Before a message is parsed.

    def admit(self, data: bytes, host: str, now: float) -> bool:
        """Return True when a message may be parsed. The cost is bounded, whatever the message holds."""
        if host in self.trusted:
            return True
        source = source_of(host)
        record = self._bans.get(source)
        if record is not None and now < record.until and not self._lift_ban(record, source, host, now):
            self.rejected["banned"] += 1
            return False
        unknown = self._unknown.get(source)
        if unknown is None or now - unknown.checked_at >= _RECHECK_S or host in self._trusted_until:
            if self._add_if_trusted(host, now):
                return True
            unknown = unknown or self._enter(source, now)
            unknown.checked_at = now
        else:
            self._unknown.move_to_end(source)
        return self._admit_unknown(unknown, source, data, now)

    def _admit_unknown(self, unknown: _UnknownSource, source: str, data: bytes, now: float) -> bool:
        settings = self.settings
        if not unknown.use(settings.rate_per_s, settings.burst, now):
            self._score(unknown, source, 1.0, "rate", now)
            return False
        if not self._crowd.use(settings.crowd_rate_per_s, settings.crowd_burst, now):
            self.rejected["crowd"] += 1
            return False
        agent = _AGENT.search(data, 0, _SCANNED_BYTES)
        if agent is not None and _SCANNERS.search(agent[1]):
            self.rejected["scanner"] += 1
            self._ban(source, "scanner", now)
            return False
        return True

    def admits_connection(self, host: str, now: float) -> bool:
        """Return True when a host may connect, as every source may that is not banned."""
        if host in self.trusted:
            return True
        source = source_of(host)
        record = self._bans.get(source)
        if record is None or now >= record.until or self._lift_ban(record, source, host, now):
            return True
        self.rejected["banned"] += 1
        return False

    def is_trusted(self, host: str, now: float) -> bool:
        """Return True when a host is trusted."""
        return host in self.trusted or self._add_if_trusted(host, now)

    def _add_if_trusted(self, host: str, now: float) -> bool:
        """Add a host to `trusted` if it is trusted."""
        until = self._trusted_until.get(host)
        if (until is not None and now < until) or self._is_trusted(host):
            if len(self.trusted) >= self.settings.max_sources:
                self.trusted.clear()  # A trusted network may be larger than memory.
            self.trusted.add(host)
            self._unknown.pop(source_of(host), None)
            return True
        return False

    def _lift_ban(self, record: _BanRecord, source: str, host: str, now: float) -> bool:
        """Lift the ban of a host that has become trusted since."""
        if now - record.checked_at < _RECHECK_S:
            return False
        record.checked_at = now
        if not self._add_if_trusted(host, now):
            return False
        del self._bans[source]
        return True

    def _enter(self, source: str, now: float) -> _UnknownSource:
        unknown = self._unknown[source] = _UnknownSource(self.settings.burst, now, now, now)
        if len(self._unknown) > self.settings.max_sources:
            self._unknown.popitem(last=False)
        return unknown

    # After it was parsed.

    def may_answer(self, host: str, now: float) -> bool:
        """Score the request of an unknown source; True when it gets its refusal, one per interval."""
        source = source_of(host)
        unknown = self._unknown.get(source) or self._enter(source, now)
        self._score(unknown, source, 1.0, "stranger", now)
        last = unknown.answered_at
        if not self.settings.answer_unknown_sources:
            return False
        if last is not None and now - last < self.settings.answer_interval_s:
            return False
        unknown.answered_at = now
        return True

    def on_malformed(self, host: str, now: float) -> None:
        """Score a malformed message of an unknown source."""
        source = source_of(host)
        unknown = self._unknown.get(source) or self._enter(source, now)
        self._score(unknown, source, self.settings.malformed_score, "malformed", now)

    def trust(self, host: str, now: float) -> None:
        """Trust a source for `trust_s`: we sent it a request, or it took part in a dialog."""
        if host in self.trusted:
            return
        self._trusted_until[host] = now + self.settings.trust_s
        self._trusted_until.move_to_end(host)
        if len(self._trusted_until) > self.settings.max_sources:
            self._trusted_until.popitem(last=False)
        self._bans.pop(source_of(host), None)
        self._add_if_trusted(host, now)

    # Credentials.

    def on_auth_failure(self, host: str, now: float) -> None:
        """
        Count wrong credentials of a source.

        The source is slowed after `slow_after_failures`, and banned after `max_auth_failures`, unless the
        application trusts it. Call this only for an answer to a nonce issued to this source, which nobody
        else can forge; never for a request without credentials, as every exchange begins (RFC 3261 22.2).
        """
        settings = self.settings
        self.rejected["credentials"] += 1
        source = source_of(host)
        failures = self._failures.setdefault(source, _Failures())
        self._failures.move_to_end(source)
        if len(self._failures) > settings.max_sources:
            self._failures.popitem(last=False)
        failures.count = failures.count + 1 if now - failures.at < settings.auth_memory_s else 1
        failures.at = now
        if failures.count <= settings.slow_after_failures or self._is_trusted(host):
            return
        self._trusted_until.pop(host, None)
        self.trusted.discard(host)
        if failures.count >= settings.max_auth_failures:
            del self._failures[source]
            self._ban(source, "credentials", now)
        else:
            unknown = self._unknown.get(source) or self._enter(source, now)
            unknown.tokens = min(unknown.tokens, 1.0 - settings.slow_s * settings.rate_per_s)

    def on_auth_success(self, host: str, now: float) -> None:
        """Trust a source whose credentials were correct."""
        self._failures.pop(source_of(host), None)
        self.trust(host, now)

    # Bans.

    def banned(self, now: float) -> dict[str, float]:
        """Return the banned sources, each with the seconds left."""
        return {source: record.until - now for source, record in self._bans.items() if now < record.until}

    def refresh_trusted(self, now: float) -> None:
        """Clear `trusted`, so that every source is checked again, and drop expired trust."""
        self.trusted.clear()
        while self._trusted_until and next(iter(self._trusted_until.values())) <= now:
            self._trusted_until.popitem(last=False)

    def _score(self, unknown: _UnknownSource, source: str, points: float, reason: str, now: float) -> None:
        self.rejected[reason] += 1
        faded = (now - unknown.scored_at) * self.settings.score_decay_per_s
        unknown.score = max(0.0, unknown.score - faded) + points
        unknown.scored_at = now
        if unknown.score >= self.settings.ban_score:
            self._ban(source, reason, now)

    def _ban(self, source: str, reason: str, now: float) -> None:
        settings = self.settings
        record = self._bans.setdefault(source, _BanRecord())
        self._bans.move_to_end(source)
        if len(self._bans) > settings.max_sources:
            self._bans.popitem(last=False)
        if record.count and now - record.until > settings.ban_memory_s:
            record.count = 0
        base_s = settings.auth_ban_s if reason == "credentials" else settings.ban_s
        for_s = min(settings.max_ban_s, base_s * 2.0 ** min(record.count, 30))
        record.count += 1
        record.until = now + for_s
        record.checked_at = now
        self._unknown.pop(source, None)
        if self._on_ban is not None:
            self._on_ban(Ban(source, reason, for_s, record.count))


@lru_cache(maxsize=4096)
def source_of(host: str) -> str:
    """Return the source of a host: an IPv4 address, or the /64 network of an IPv6 address."""
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.partition("%")[0])
    except AddressValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> _IPV6_SOURCE_BITS << _IPV6_SOURCE_BITS)}/{_IPV6_SOURCE_BITS}"
