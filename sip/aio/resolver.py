"""Non-blocking look-up of peers by name: shared queries, cached answers, and bounds."""

import asyncio
import ipaddress
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sip.aio.dns_client import DnsAnswer, DnsClient, DnsUnavailable, HostsFile, NameServer
from sip.location.rfc3263 import (
    Destination,
    DnsQuery,
    Lookup,
    Records,
    SupportedFamilies,
    Target,
    ip_version,
    locate,
    sources,
)

logger = logging.getLogger(__name__)

_RANDOM = random.SystemRandom()
MIN_TTL_S = 1.0
MAX_TTL_S = 3600.0
MAX_MISSING_S = 300.0
"""Longest time that a missing record is cached: a record added meanwhile is found after it."""
UNKNOWN_MISSING_S = 5.0
"""Time that a missing name is cached when the answer has no SOA record."""
FAILED_FOR_S = 5.0
"""Time before a query that no name server answered is sent again."""
STALE_FOR_S = 3600.0
"""Time after its expiry that an answer still serves when no name server answers (RFC 8767)."""
MAX_REMEMBERED = 4096
MAX_QUESTIONS = 64
"""Concurrent queries; further ones count as not answered."""
MAX_LOOKUPS = 1024
LOOKUP_LIMIT_S = 4.0

Found = Callable[[Sequence[Target]], None]


def is_address(host: str) -> bool:
    """True if a host is an IP address literal."""
    return ip_version(host) is not None


def canonical(host: str) -> str:
    """Return the canonical form of a host: IPv6 addresses have many spellings."""
    return str(ipaddress.ip_address(host)) if ":" in host and is_address(host) else host


def is_private(host: str) -> bool:
    """True if a host is a private address, valid only within its own network."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False


class Asker(Protocol):
    """Sender of single DNS queries."""

    async def ask(self, query: DnsQuery) -> DnsAnswer:
        """
        Send one query.

        Raises:
            DnsUnavailable: No name server answered.
        """


@dataclass(slots=True)
class _Known:
    records: Records
    fresh_until: float
    stale_until: float


class Resolver:
    """
    Finds the targets of SIP addresses.

    Answers, negative ones included, are cached for their TTL, within bounds; look-ups of one name share one
    query. When no name server answers, an expired answer still serves for a while. Concurrent queries and
    the time of each look-up are bounded, so a dead name server only costs calls to names that are not cached.
    """

    def __init__(
        self,
        servers: Sequence[NameServer] = (),
        *,
        asker: Asker | None = None,
        hosts: HostsFile | None = None,
        time: Callable[[], float] | None = None,
    ) -> None:
        self.families: SupportedFamilies = {"udp": (4,)}
        """Available transports and the IP versions of each; set by the user agent when it starts."""
        self._servers = servers
        self._asker = asker
        self._hosts = hosts or HostsFile()
        self._time = time
        self._known: dict[DnsQuery, _Known] = {}
        self._asking: dict[DnsQuery, asyncio.Task[Records]] = {}
        self._lookups: set[asyncio.Task[None]] = set()

    def locate(self, destination: Destination, found: Found) -> None:
        """Call `found` with the targets, possibly none; at once when all answers are cached."""
        lookup = locate(destination, self.families, _RANDOM.uniform)
        queries = self._advance(lookup)
        if not isinstance(queries, tuple):
            found(queries)
        elif len(self._lookups) >= MAX_LOOKUPS:
            found(())
        else:
            task = asyncio.get_running_loop().create_task(self._look_up(lookup, queries, found))
            self._lookups.add(task)
            task.add_done_callback(self._lookups.discard)

    async def addresses(self, host: str) -> tuple[str, ...]:
        """Return all addresses from which a named peer may call; none when the name is unknown."""
        lookup = sources(host)
        queries = self._advance(lookup)
        found = await self._walk(lookup, queries) if isinstance(queries, tuple) else queries
        return tuple(dict.fromkeys(target.host for target in found))

    def close(self) -> None:
        """Stop all look-ups without calling back."""
        for task in (*self._lookups, *self._asking.values()):
            task.cancel()

    # One look-up.

    def _advance(
        self, lookup: Lookup, replies: Mapping[DnsQuery, Records] | None = None
    ) -> "tuple[DnsQuery, ...] | list[Target]":
        """Advance with the cached answers; returns the targets, or the queries still to be sent."""
        try:
            queries = next(lookup) if replies is None else lookup.send(replies)
            while True:
                known = {query: self._recall(query) for query in queries}
                if None in known.values():
                    return tuple(queries)
                queries = lookup.send({query: records or () for query, records in known.items()})
        except StopIteration as end:
            return list(end.value)

    async def _look_up(self, lookup: Lookup, queries: tuple[DnsQuery, ...], found: Found) -> None:
        targets = await self._walk(lookup, queries)
        try:
            found(targets)
        except Exception:  # Nobody awaits this task: its failure would be lost.
            logger.exception("Sending to a resolved name failed")

    async def _walk(self, lookup: Lookup, queries: tuple[DnsQuery, ...]) -> list[Target]:
        deadline = self._now() + LOOKUP_LIMIT_S
        while True:
            replies = await self._ask_all(queries, deadline)
            result = self._advance(lookup, replies)
            if not isinstance(result, tuple):
                return result
            queries = result

    async def _ask_all(self, queries: tuple[DnsQuery, ...], deadline: float) -> dict[DnsQuery, Records]:
        replies: dict[DnsQuery, Records] = {}
        waiting: dict[DnsQuery, asyncio.Task[Records]] = {}
        for query in queries:
            known = self._recall(query)
            if known is not None:
                replies[query] = known
                continue
            task = self._ask(query)
            if task is not None:
                waiting[query] = task
        if waiting:
            # A slower query continues for later look-ups; here it counts as not answered.
            await asyncio.wait(waiting.values(), timeout=max(deadline - self._now(), 0.0))
        for query, task in waiting.items():
            done = task.done() and not task.cancelled()
            replies[query] = task.result() if done else self._stale(query)
        return replies

    def _ask(self, query: DnsQuery) -> "asyncio.Task[Records] | None":
        task = self._asking.get(query)
        if task is None and len(self._asking) < MAX_QUESTIONS:
            task = asyncio.get_running_loop().create_task(self._put(query))
            self._asking[query] = task
            task.add_done_callback(lambda _: self._asking.pop(query, None))
        return task

    async def _put(self, query: DnsQuery) -> Records:
        if self._asker is None:
            self._asker = DnsClient(self._servers)
        try:
            answer = await self._asker.ask(query)
        except DnsUnavailable as error:
            return self._remember_failure(query, error)
        except (
            Exception
        ) as error:  # Any failure of the library on a strange answer counts as one unanswered query.
            logger.exception("Cannot parse a DNS answer")
            return self._remember_failure(query, error)
        if answer.records:
            ttl_s = min(max(answer.ttl_s, MIN_TTL_S), MAX_TTL_S)
        else:
            ttl_s = min(answer.ttl_s, MAX_MISSING_S) if answer.ttl_s > 0 else UNKNOWN_MISSING_S
            ttl_s = max(ttl_s, MIN_TTL_S)
        self._remember(query, answer.records, ttl_s, STALE_FOR_S if answer.records else 0.0)
        return answer.records

    # Cached answers.

    def _now(self) -> float:
        return self._time() if self._time is not None else asyncio.get_running_loop().time()

    def _recall(self, query: DnsQuery) -> Records | None:
        """Return the cached or hosts-file records for a query; None when it must be sent."""
        now = self._now()
        known = self._known.get(query)
        if known is not None and known.fresh_until > now:
            return known.records
        return self._hosts.records(query, now)

    def _stale(self, query: DnsQuery) -> Records:
        known = self._known.get(query)
        return known.records if known is not None and known.stale_until > self._now() else ()

    def _remember(self, query: DnsQuery, records: Records, ttl_s: float, stale_s: float) -> None:
        self._known.pop(query, None)
        if len(self._known) >= MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        now = self._now()
        self._known[query] = _Known(records, now + ttl_s, now + ttl_s + stale_s)

    def _remember_failure(self, query: DnsQuery, error: Exception) -> Records:
        records = self._stale(query)
        logger.warning(
            "No answer from the DNS to %s %s%s: %s",
            query.kind.value,
            query.name,
            "; the last one serves on" if records else "",
            error,
        )
        known = self._known.get(query)
        self._remember(query, records, FAILED_FOR_S, 0.0)
        if known is not None and records:
            self._known[query].stale_until = known.stale_until
        return records
