"""
Rate limits and bans by source, applied before a message is parsed.

A source is *trusted* when the application trusts its address (a gateway, a trusted network) or when it takes
part in something: we sent it a request, it sent a request within a dialog, its credentials were correct. Any
other source is *unknown*: it has a small token bucket of datagrams, gets at most one answer per interval, and
its score leads to a ban.

Source addresses of datagrams can be forged. Traffic alone therefore never counts against a trusted source:
otherwise an attacker could have a carrier banned.

The rules are native (`sip/native/src/source_guard.cpp`); here are their settings and their face in Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address

from sip._wire import SOURCE_ASK, SOURCE_DROP, SOURCE_KNOWN, TRUST_NO, TRUST_UNASKED, TRUST_YES
from sip.message.native import wire

FRONT_HEADER = "X-Trunkline-Source"
"""Field in which a SIP front names the source of a request: `udp:198.51.100.7:5060`."""

_IPV6_SOURCE_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionSettings:
    """
    Limits of unknown sources, and bounds of the memory about sources.

    `rate_per_s` and `burst` limit the datagrams of one unknown source, the `crowd` ones those of all unknown
    sources together. A datagram over the rate scores 1, a malformed one `malformed_score`, a refused one 1.
    At `ban_score` the source is banned for `ban_s` (after wrong passwords `auth_ban_s`), twice as long each
    time, `max_ban_s` at most. With `answer_unknown_sources` False unknown sources get no answer. `fronts` are
    the networks, as CIDRs, of the SIP proxies in front of this server, which name the source of each request.
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
    fronts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ban:
    """Report of a ban: its source, reason, duration, and the number of bans so far."""

    source: str
    reason: str
    for_s: float
    count: int


class Protection:
    """
    Judge of all sources, with the application that it asks; bounded memory, no clock.

    Datagrams are judged where they are read, before they become objects; what comes by connections, and what
    only Python can tell of a message, is reported here. The caller must call `refresh_trusted` regularly,
    since the application may withdraw its trust. `is_trusted` asks the application; `on_ban` gets each ban.
    """

    def __init__(
        self,
        settings: ProtectionSettings,
        is_trusted: Callable[[str], bool],
        on_ban: Callable[[Ban], None] | None = None,
    ) -> None:
        self.settings = settings
        self.sources = wire.SourceGuard(settings)
        """Native judge, which any thread may ask without objects."""
        self.asks = is_trusted
        """The application's test of a host."""
        self._on_ban = on_ban
        self._left_out = 0

    # Before a message is parsed.

    def admit(self, data: bytes, remote: tuple[str, int], now: float, *, is_datagram: bool = True) -> int:
        """
        Judge a message of an address and port: `SOURCE_DROP`, or `SOURCE_UNKNOWN` or `SOURCE_KNOWN`.

        Only a message that is not dropped may be parsed. The cost is bounded, whatever the message holds.
        """
        host, port = remote
        judge = self.sources.judge
        answer = judge(data, host, port, is_datagram, now, TRUST_UNASKED)
        if answer == SOURCE_ASK:
            answer = judge(data, host, port, is_datagram, now, self._word_on(host))
        if answer == SOURCE_DROP:
            self.tell_bans()
        return answer

    def admits_connection(self, host: str, now: float) -> bool:
        """Return True when a host may connect, as every source may that is not banned."""
        answer = self.sources.judge_connection(host, now, TRUST_UNASKED)
        if answer == SOURCE_ASK:
            answer = self.sources.judge_connection(host, now, self._word_on(host))
        return answer != SOURCE_DROP

    def is_trusted(self, host: str, now: float) -> bool:
        """Return True when a host is trusted."""
        answer = self.sources.judge_host(host, now, TRUST_UNASKED)
        if answer == SOURCE_ASK:
            answer = self.sources.judge_host(host, now, self._word_on(host))
        return answer == SOURCE_KNOWN

    def knows(self, host: str) -> bool:
        """Return True for a host that was found to be trusted, until `refresh_trusted`."""
        return self.sources.knows(host)

    def _word_on(self, host: str) -> int:
        return TRUST_YES if self.asks(host) else TRUST_NO

    # After it was parsed.

    def may_answer(self, host: str, now: float) -> bool:
        """Score the request of an unknown source; True when it gets its refusal, one per interval."""
        may = self.sources.may_answer(host, now)
        self.tell_bans()
        return may

    def on_malformed(self, host: str, now: float) -> None:
        """Score a malformed message of an unknown source."""
        self.sources.on_malformed(host, now)
        self.tell_bans()

    def trust(self, host: str, now: float) -> None:
        """Trust a source for `trust_s`: we sent it a request, or it took part in a dialog."""
        self.sources.trust(host, now)

    # Credentials.

    def on_auth_failure(self, host: str, now: float) -> None:
        """
        Count wrong credentials of a source.

        The source is slowed after `slow_after_failures`, and banned after `max_auth_failures`, unless the
        application trusts it. Call this only for an answer to a nonce issued to this source, which nobody
        else can forge; never for a request without credentials, as every exchange begins (RFC 3261 22.2).
        """
        self.sources.on_auth_failure(host, self.asks(host), now)
        self.tell_bans()

    def on_auth_success(self, host: str, now: float) -> None:
        """Trust a source whose credentials were correct."""
        self.sources.on_auth_success(host, now)

    # Bans.

    def banned(self, now: float) -> dict[str, float]:
        """Return the banned sources, each with the seconds left."""
        return self.sources.banned(now)

    def refresh_trusted(self, now: float) -> None:
        """Check every source again, and drop expired trust."""
        self.sources.refresh(now)

    def tell_bans(self) -> None:
        """Report new bans; those that are too many are counted."""
        bans, left_out = self.sources.take_bans()
        self._left_out += left_out
        if self._on_ban is not None:
            for source, reason, for_s, count in bans:
                self._on_ban(Ban(source, reason, for_s, count))

    def take_left_out(self) -> int:
        """Return the number of bans that were not reported since the call before."""
        left_out, self._left_out = self._left_out, 0
        return left_out

    # Counts.

    @property
    def rejected(self) -> Counter[str]:
        """Messages that were not served, by reason."""
        return Counter(self.sources.rejected())

    @property
    def trusted(self) -> frozenset[str]:
        """Hosts that were found to be trusted since the last `refresh_trusted`."""
        return frozenset(self.sources.known())


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
