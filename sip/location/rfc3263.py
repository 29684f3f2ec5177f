"""
Server location for a SIP address (RFC 3263), as a sans-I/O exchange of DNS queries and records.

`locate` is a generator: it yields the queries to resolve together, is sent the records found, and finally
returns the targets in the order of trying. No I/O, no clock; the caller supplies randomness. DNS answers are
untrusted: unusable records are skipped, and the number of records and targets used is bounded.
"""

import ipaddress
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from sip.message.uri import SipUri
from sip.values import frozen

MAX_ADDRESS_CHARS = 64
"""A literal address, with its zone, is not longer."""
MAX_RECORDS = 64
"""Limit of records read from one answer."""
MAX_HOSTS = 16
"""Limit of host names whose addresses are looked up."""
MAX_TARGETS = 8
TRANSPORTS = ("udp", "tcp", "tls")
"""Supported transports, in the order of preference where the peer leaves the choice to us."""

_SRV_PREFIX = {"udp": "_sip._udp.", "tcp": "_sip._tcp.", "tls": "_sips._tcp."}
_SERVICES = {"SIP+D2U": "udp", "SIP+D2T": "tcp", "SIPS+D2T": "tls"}


class Kind(Enum):
    """Type of a DNS query."""

    NAPTR = "NAPTR"
    SRV = "SRV"
    A = "A"
    AAAA = "AAAA"


class DnsQuery(NamedTuple):
    """One DNS query; `name` is in lower case and without a final dot."""

    kind: Kind
    name: str


class Naptr(NamedTuple):
    """A NAPTR record (RFC 3403 4.1)."""

    order: int
    preference: int
    flags: str
    service: str
    regexp: str
    replacement: str


class Srv(NamedTuple):
    """An SRV record (RFC 2782)."""

    priority: int
    weight: int
    port: int
    target: str


Records = Sequence[Any]
"""`Naptr`, `Srv` or addresses as text, by the type of the query; empty without records or answer."""

SupportedFamilies = Mapping[str, Sequence[int]]
"""Available transports, each with the IP versions it can send to, the preferred first."""

RandomBetween = Callable[[float, float], float]


@frozen
class Destination:
    """
    Address of a peer: `transport` is `udp`, `tcp` or `tls`, `host` an IP address or a name.

    Over TLS the peer's certificate must identify `verify`, or the host when that is None (RFC 5922 7).
    `secure` stands for a `sips` URI.

    Port 0 and transport None are looked up in the DNS (RFC 3263). A name may then have several targets, as a
    name with a port and several addresses has.
    """

    transport: str | None
    host: str
    port: int = 5060
    verify: str | None = None
    secure: bool = False

    @classmethod
    def of(cls, uri: SipUri) -> "Destination":
        """
        Return the destination of a request to a URI or a route.

        Source: RFC 3263 4: the `maddr` parameter replaces the host.
        """
        host = uri.param("maddr") or uri.host
        return cls(uri.transport, host, uri.port or 0, secure=uri.scheme == "sips")


@frozen
class Target:
    """One address to send to; `name` is the name a TLS certificate must carry."""

    transport: str
    host: str
    port: int
    name: str


Lookup = Generator[Sequence[DnsQuery], Mapping[DnsQuery, Records], list[Target]]


def locate(destination: Destination, families: SupportedFamilies, random_between: RandomBetween) -> Lookup:
    """
    Look up the targets of an address and return them, best first; an empty list when there are none.

    `random_between` returns a random number between two bounds. A given port, IP address or transport skips
    the lookups that would find it.

    Source: RFC 3263 4.1, 4.2; RFC 5922 4 for the name.
    """
    host = destination.host.strip("[]").rstrip(".").lower()
    name = destination.verify or host
    fixed = _fixed_transport(destination)
    if fixed is not None and fixed not in families:
        return []
    if destination.port or ip_version(host) is not None:
        transport = fixed or _usual_transport(destination, families)
        spots = [(transport, host, destination.port or default_port(transport))]
    else:
        spots, barred = yield from _services(host, fixed, destination, families, random_between)
        if not spots and not barred:
            transport = fixed or _usual_transport(destination, families)
            spots = [(transport, host, default_port(transport))]
    addresses = yield from _ask(_address_queries(spots, families))
    return _targets(spots, addresses, families, name)


def sources(host: str) -> Lookup:
    """
    Look up every address a named peer may call from: those of the name and of all its SIP services.

    Only the addresses of the returned targets are meaningful.
    """
    host = host.strip("[]").rstrip(".").lower()
    everywhere: SupportedFamilies = {transport: (4, 6) for transport in TRANSPORTS}
    services = [DnsQuery(Kind.SRV, _SRV_PREFIX[transport] + host) for transport in TRANSPORTS]
    replies = yield from _ask([DnsQuery(Kind.NAPTR, host), *services])
    further = [name for _, name in _chosen_services(replies[DnsQuery(Kind.NAPTR, host)], TRANSPORTS)]
    replies |= yield from _ask(
        [DnsQuery(Kind.SRV, name) for name in further if DnsQuery(Kind.SRV, name) not in replies]
    )
    names = [host]
    for query, records in replies.items():
        if query.kind is Kind.SRV:
            names += [record.target for record in _usable_srv(records)]
    spots = [("udp", name, 5060) for name in dict.fromkeys(names[:MAX_HOSTS])]
    addresses = yield from _ask(_address_queries(spots, everywhere))
    return _targets(spots, addresses, everywhere, host, limit=4 * MAX_TARGETS)


def default_port(transport: str) -> int:
    """Return the default port of a transport (RFC 3261 19.1.2)."""
    return 5061 if transport == "tls" else 5060


def ip_version(host: str) -> int | None:
    """Return 4 or 6 for an address as text, None for a name."""
    # A host may be a peer's, of any length, and what is remembered is bounded.
    return _ip_version(host) if len(host) <= MAX_ADDRESS_CHARS else None


@lru_cache(maxsize=1024)
def _ip_version(host: str) -> int | None:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


def order_srv(records: Iterable[Srv], random_between: RandomBetween) -> list[Srv]:
    """
    Sort SRV records into the order of trying: by priority, then by a weighted random draw.

    Source: RFC 2782, "Weight"; a record of weight 0 keeps a very small chance beside others.
    """
    ranks: dict[int, list[Srv]] = {}
    for record in records:
        ranks.setdefault(record.priority, []).append(record)
    ordered: list[Srv] = []
    for priority in sorted(ranks):
        left = sorted(ranks[priority], key=lambda record: record.weight > 0)
        while left:
            total = sum(record.weight for record in left)
            mark = min(int(random_between(0.0, total + 1.0)), total)
            at, running = 0, left[0].weight
            while running < mark:
                at += 1
                running += left[at].weight
            ordered.append(left.pop(at))
    return ordered


# The transport (RFC 3263 4.1).


def _fixed_transport(destination: Destination) -> str | None:
    """Return the transport the address itself determines; "" for an impossible one, None for none."""
    transport = destination.transport
    if not destination.secure:
        return transport
    if transport is None:
        return None
    return "tls" if transport in ("tcp", "tls") else ""


def _usual_transport(destination: Destination, families: SupportedFamilies) -> str:
    if destination.secure:
        return "tls"
    return next((name for name in TRANSPORTS if name in families), "udp")


def _services(
    host: str,
    fixed: str | None,
    destination: Destination,
    families: SupportedFamilies,
    random_between: RandomBetween,
) -> Generator[Sequence[DnsQuery], Mapping[DnsQuery, Records], tuple[list[tuple[str, str, int]], bool]]:
    """
    Find transport, host and port of a name without a port; the flag is True when SRV denies the service.

    NAPTR and SRV are queried together: it saves a round trip, and a name server or firewall that drops
    NAPTR queries does not fail the call.
    """
    if fixed is not None:
        allowed: Sequence[str] = (fixed,)
    else:
        usable = ("tls",) if destination.secure else TRANSPORTS
        allowed = [name for name in usable if name in families]
    plain = [(transport, _SRV_PREFIX[transport] + host) for transport in allowed]
    naptr = DnsQuery(Kind.NAPTR, host)
    queries = [DnsQuery(Kind.SRV, name) for _, name in plain]
    replies = yield from _ask(queries if fixed is not None else [naptr, *queries])
    chosen = _chosen_services(replies.get(naptr, ()), allowed)
    if chosen:
        replies |= yield from _ask(
            [DnsQuery(Kind.SRV, name) for _, name in chosen if DnsQuery(Kind.SRV, name) not in replies]
        )
    found: list[tuple[str, str, int]] = []
    barred = False
    for transport, name in chosen or plain:
        records = replies[DnsQuery(Kind.SRV, name)]
        barred = barred or any(record.target == "" for record in records)
        found += [
            (transport, item.target, item.port) for item in order_srv(_usable_srv(records), random_between)
        ]
        if found and not chosen:
            break  # Without NAPTR the first transport suffices: the others lead to the same servers.
    return found, barred


def _chosen_services(records: Records, allowed: Sequence[str]) -> list[tuple[str, str]]:
    """
    Return the SRV names of the NAPTR records with an allowed transport, the preferred first.

    Only the lowest order with such a record counts (RFC 3403 4.1); preference sorts within it.
    """
    fitting = [
        record
        for record in records[:MAX_RECORDS]
        if record.flags.lower() == "s"
        and not record.regexp
        and record.replacement
        and _SERVICES.get(record.service.upper()) in allowed
    ]
    lowest = min((record.order for record in fitting), default=0)
    fitting = sorted(
        (record for record in fitting if record.order == lowest), key=lambda record: record.preference
    )
    return [(_SERVICES[record.service.upper()], record.replacement) for record in fitting[:MAX_HOSTS]]


def _usable_srv(records: Records) -> list[Srv]:
    """Return the records that name a host; "." means that the service is not available (RFC 2782)."""
    return [record for record in records[:MAX_RECORDS] if record.target and record.port]


# The addresses (RFC 3263 4.2).


def _address_queries(spots: Sequence[tuple[str, str, int]], families: SupportedFamilies) -> list[DnsQuery]:
    queries: dict[DnsQuery, None] = {}
    names = dict.fromkeys(host for _, host, _ in spots if ip_version(host) is None)
    kept = set(list(names)[:MAX_HOSTS])
    for transport, host, _ in spots:
        if host in kept:
            for version in families.get(transport, ()):
                queries[DnsQuery(Kind.A if version == 4 else Kind.AAAA, host)] = None
    return list(queries)


def _targets(
    spots: Sequence[tuple[str, str, int]],
    addresses: Mapping[DnsQuery, Records],
    families: SupportedFamilies,
    name: str,
    limit: int = MAX_TARGETS,
) -> list[Target]:
    targets: dict[Target, None] = {}
    for transport, host, port in spots:
        for version in families.get(transport, ()):
            if ip_version(host) is not None:
                found: Records = (host,) if ip_version(host) == version else ()
            else:
                found = addresses.get(DnsQuery(Kind.A if version == 4 else Kind.AAAA, host), ())
            for address in found[:MAX_RECORDS]:
                if ip_version(address) == version:
                    targets[Target(transport, address, port, name)] = None
    return list(targets)[:limit]


def _ask(
    queries: Sequence[DnsQuery],
) -> Generator[Sequence[DnsQuery], Mapping[DnsQuery, Records], dict[DnsQuery, Records]]:
    """Yield the queries, if any; a query without a reply counts as one without records."""
    if not queries:
        return {}
    replies = yield queries
    return {query: replies.get(query, ()) for query in queries}
