"""Client for single DNS queries, and the hosts file that takes precedence."""

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dns.asyncresolver
import dns.exception
import dns.message
import dns.nameserver
import dns.rdatatype
import dns.resolver

from sip.location.rfc3263 import DnsQuery, Kind, Naptr, Records, Srv, ip_version

logger = logging.getLogger(__name__)

TRY_LIMIT_S = 1.0
"""Limit for one name server, after which the next one, or the same again, is asked."""
QUESTION_LIMIT_S = 2.5
"""Limit for all name servers together."""
MAX_RECORDS = 64
_FILE_CHECK_S = 5.0
_MAX_FILE_BYTES = 1024 * 1024

NameServer = tuple[str, int]
"""IP address and port."""


class DnsUnavailable(Exception):
    """No name server answered; the name may exist or not."""


@dataclass(frozen=True, slots=True)
class DnsAnswer:
    """The records of a name, possibly none, and their time to live in seconds."""

    records: tuple[Any, ...]
    ttl_s: float


class DnsClient:
    """Queries the given name servers or the system's (resolv.conf); retries truncated answers over TCP."""

    def __init__(self, servers: Sequence[NameServer] = ()) -> None:
        self._resolver = _system() if not servers else dns.asyncresolver.Resolver(configure=False)
        if servers:
            self._resolver.nameservers = [dns.nameserver.Do53Nameserver(host, port) for host, port in servers]
        self._resolver.timeout = TRY_LIMIT_S
        self._resolver.lifetime = QUESTION_LIMIT_S
        self._resolver.cache = None

    async def ask(self, query: DnsQuery) -> DnsAnswer:
        """
        Send one query.

        Raises:
            DnsUnavailable: No name server answered, or no answer was usable.
        """
        kind, name = query
        if not self._resolver.nameservers:
            raise DnsUnavailable("No DNS server is configured")
        address = kind in (Kind.A, Kind.AAAA)
        try:
            answer = await self._resolver.resolve(
                name, kind.value, raise_on_no_answer=False, search=address and not name.count(".")
            )
        except dns.resolver.NXDOMAIN as missing:
            return DnsAnswer((), _negative_ttl_s(missing))
        except (dns.exception.DNSException, OSError, ValueError, EOFError) as error:
            # Names that break the rules of IDNA and unreadable answers raise ValueError, among others.
            raise DnsUnavailable(str(error)) from error
        return DnsAnswer(_records(kind, answer.rrset), _ttl_s(answer.response))


def _system() -> dns.asyncresolver.Resolver:
    try:
        return dns.asyncresolver.Resolver()
    except (dns.exception.DNSException, OSError, ValueError) as error:
        logger.warning("No DNS server is configured; names of peers cannot be resolved: %s", error)
        return dns.asyncresolver.Resolver(configure=False)


def _negative_ttl_s(missing: dns.resolver.NXDOMAIN) -> float:
    """Return the negative TTL from the SOA record of the answer (RFC 2308 5), 0.0 when it has none."""
    with contextlib.suppress(dns.exception.DNSException, KeyError, TypeError, IndexError, ValueError):
        responses: Mapping[Any, dns.message.QueryMessage] = missing.kwargs["responses"]
        return min(_ttl_s(response) for response in responses.values())
    return 0.0


def _ttl_s(response: dns.message.QueryMessage) -> float:
    chain = response.resolve_chaining()
    dated = any(rrset.rdtype == dns.rdatatype.SOA for rrset in response.authority)
    return float(chain.minimum_ttl) if chain.answer is not None or dated else 0.0


def _records(kind: Kind, rrset: Any) -> tuple[Any, ...]:
    if rrset is None:
        return ()
    made = (_MAKERS[kind](item) for item in list(rrset)[:MAX_RECORDS])
    return tuple(item for item in made if item is not None)


def _name(name: Any) -> str:
    """Return a DNS name as lower-case text without its final dot; "" for the root."""
    return str(name.to_text(omit_final_dot=True)).lower() if len(name) > 1 else ""


def _text(data: bytes) -> str:
    return data.decode("ascii", "replace")


def _naptr(item: Any) -> Naptr:
    return Naptr(
        item.order,
        item.preference,
        _text(item.flags),
        _text(item.service),
        _text(item.regexp),
        _name(item.replacement),
    )


_MAKERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.NAPTR: _naptr,
    Kind.SRV: lambda item: Srv(item.priority, item.weight, item.port, _name(item.target)),
    Kind.A: lambda item: item.address,
    Kind.AAAA: lambda item: item.address,
}


class HostsFile:
    """
    The system's hosts file, read again when it has changed.

    It is read here and not by the system's resolver, whose threads a dead name server would block.
    """

    def __init__(self, path: Path = Path("/etc/hosts")) -> None:
        self._path = path
        self._stamp: tuple[float, int] | None = None
        self._checked_at = float("-inf")
        self._hosts: dict[str, tuple[str, ...]] = {}

    def addresses(self, name: str, now: float) -> tuple[str, ...]:
        """Return the addresses of a name in the file, or of `localhost` (RFC 6761 6.3)."""
        if now - self._checked_at >= _FILE_CHECK_S:
            self._checked_at = now
            self._read()
        found = self._hosts.get(name)
        if found is None and (name == "localhost" or name.endswith(".localhost")):
            return ("127.0.0.1", "::1")
        return found or ()

    def records(self, query: DnsQuery, now: float) -> Records | None:
        """Return the file's records for a query; None when the file does not contain the name."""
        if query.kind not in (Kind.A, Kind.AAAA):
            return None
        found = self.addresses(query.name, now)
        version = 4 if query.kind is Kind.A else 6
        return tuple(item for item in found if ip_version(item) == version) if found else None

    def _read(self) -> None:
        try:
            status = self._path.stat()
            stamp = (status.st_mtime, status.st_size)
            if stamp == self._stamp:
                return
            with self._path.open("rb") as file:
                text = file.read(_MAX_FILE_BYTES).decode("ascii", "replace")
        except OSError:
            return
        self._stamp = stamp
        hosts: dict[str, tuple[str, ...]] = {}
        for line in text.splitlines():
            address, *names = line.partition("#")[0].split() or [""]
            if ip_version(address) is not None:
                for name in names:
                    hosts[name.lower()] = (*hosts.get(name.lower(), ()), address)
        self._hosts = hosts
