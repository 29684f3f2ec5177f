"""Resolve a customer's host once, have every address judged, and connect to those addresses only."""

import asyncio
import errno
import socket
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from ipaddress import ip_address
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from callcontrol.egress.url_policy import Destinations, check_url, judge, literal_address
from callcontrol.errors import DestinationForbidden, DomainError

__all__ = ["CheckedResolver", "DestinationGuard", "checked_connector"]

_RESOLVE_TIMEOUT_S: Final = 5.0
_MAX_LOOKUPS: Final = 256
_MAX_LOOKUPS_OF_A_DOMAIN: Final = 16
_MAX_CHECKED: Final = 4096

SocketAddress = tuple[Any, ...]
Lookup = Callable[[str, int], Sequence[SocketAddress]]


def _system_lookup(host: str, port: int) -> Sequence[SocketAddress]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [entry[4] for entry in found]


class DestinationGuard:
    """
    The guard of this process; implements ``callcontrol.calls.ports.Destinations``.

    A host that resolves to a forbidden address among others is refused whole: whoever controls the name
    would otherwise choose which of them is met.

    Lookups run on threads of their own, one for each host that is being asked for, because a customer's
    name server that never answers holds its thread for as long as the system's resolver cares to wait; on
    the event loop's shared threads a few such names would hold up everybody's. Names of one domain get a
    part of the threads only.

    Args:
        allow_private: Let this server connect to its own network.
        lookup: What asks the system; it may block.
    """

    def __init__(self, allow_private: bool = False, *, lookup: Lookup = _system_lookup) -> None:
        self.allow_private = allow_private
        self._lookup = lookup
        # A URL that was taken once is asked about again at every request to it.
        self._checked = lru_cache(_MAX_CHECKED)(partial(check_url, allow_private=allow_private))
        self._lookups: dict[tuple[str, int], asyncio.Future[Sequence[SocketAddress]]] = {}

    def check_url(self, url: str, *, schemes: Sequence[str]) -> None:
        """Refuse a URL that is wrong whatever it resolves to; see ``callcontrol.egress.url_policy``."""
        self._checked(url, schemes=tuple(schemes))

    async def resolve(self, host: str, port: int, tls: bool) -> list[Any]:
        """
        Resolve a host and return the socket addresses that may be connected to.

        Raises:
            DestinationForbidden: One of its addresses must not be connected to.
            OSError: It does not resolve, or not in five seconds.
        """
        literal = literal_address(host)
        if literal is not None:
            self._judge(host, str(literal))
            return [(str(literal), port) if literal.version == 4 else (str(literal), port, 0, 0)]
        try:
            async with asyncio.timeout(_RESOLVE_TIMEOUT_S):
                addresses = await asyncio.shield(self._ask(host, port))
        except TimeoutError:
            message = f"{host} did not resolve in {_RESOLVE_TIMEOUT_S:.0f} s"
            raise OSError(errno.ETIMEDOUT, message) from None
        except UnicodeError:
            raise OSError(errno.EINVAL, f"{host!r} is not a host name") from None
        for address in addresses:
            self._judge(host, str(address[0]))
        return list(addresses)

    def _ask(self, host: str, port: int) -> "asyncio.Future[Sequence[SocketAddress]]":
        """The lookup of a host; who asks while it is under way shares it."""
        key = (host, port)
        found = self._lookups.get(key)
        if found is not None:
            return found
        # Name servers that never answer are mostly those of one domain, whatever names it makes up.
        domain = _domain(host)
        under_way = sum(_domain(other) == domain for other, _ in self._lookups)
        if len(self._lookups) >= _MAX_LOOKUPS or under_way >= _MAX_LOOKUPS_OF_A_DOMAIN:
            raise OSError(errno.EAGAIN, "too many host names are being resolved")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence[SocketAddress]] = loop.create_future()
        self._lookups[key] = future
        future.add_done_callback(lambda done: self._asked(key, done))
        # A daemon, so that a name server that is silent does not hold up the end of the process.
        threading.Thread(
            target=self._run, args=(host, port, future, loop), name=f"resolve-{host[:40]}", daemon=True
        ).start()
        return future

    def _asked(self, key: tuple[str, int], done: "asyncio.Future[Sequence[SocketAddress]]") -> None:
        del self._lookups[key]
        if not done.cancelled():
            done.exception()  # It is known to whoever still waits; nobody may be left.

    def _run(
        self,
        host: str,
        port: int,
        future: "asyncio.Future[Sequence[SocketAddress]]",
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        outcome: Sequence[SocketAddress] | Exception
        try:
            outcome = self._lookup(host, port)
        except Exception as error:
            outcome = error
        try:
            loop.call_soon_threadsafe(_settle, future, outcome)
        except RuntimeError:
            return  # The loop was closed meanwhile.

    def _judge(self, host: str, address: str) -> None:
        reason = judge(ip_address(address.partition("%")[0]), allow_private=self.allow_private)
        if reason is not None:
            # The address is left out: the customer has no business with what a name of ours resolves to.
            raise DestinationForbidden(f"{host} {reason}; give a public address.")


def _domain(host: str) -> str:
    """What a name's owner has: its last two labels, three where the last but one is short (``co.in``)."""
    labels = host.lower().rstrip(".").split(".")
    return ".".join(labels[-3 if len(labels) > 2 and len(labels[-2]) <= 3 else -2 :])


def _settle(
    future: "asyncio.Future[Sequence[SocketAddress]]", outcome: Sequence[SocketAddress] | Exception
) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


class CheckedResolver(AbstractResolver):
    """``Destinations`` as aiohttp's resolver: its client connects to judged addresses or not at all."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve and judge; a refusal surfaces as a connection error."""
        try:
            addresses = await self._destinations.resolve(host, port, False)
        except DomainError as refusal:
            # aiohttp's own errors repeat what stands in ``strerror``.
            raise OSError(errno.EACCES, refusal.message) from None
        return [
            ResolveResult(
                hostname=host,
                host=address[0],
                port=port,
                family=socket.AF_INET6 if ":" in address[0] else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing is held."""


def checked_connector(
    destinations: Destinations, *, limit: int = 100, limit_per_host: int = 8
) -> aiohttp.TCPConnector:
    """
    A connector whose every new connection is resolved and judged anew.

    aiohttp asks no resolver about hosts that are written as addresses, and URL parsers know more ways of
    writing one than ``check_url`` may foresee. So the address of every socket is judged once more, the
    moment before it is opened.
    """

    def open_socket(info: Any) -> socket.socket:
        family, kind, proto, _, address = info
        host = f"[{address[0].partition('%')[0]}]" if ":" in address[0] else address[0]
        try:
            destinations.check_url(f"https://{host}/", schemes=("https",))
        except DomainError as refusal:
            raise OSError(errno.EACCES, refusal.message) from None
        return socket.socket(family, kind, proto)

    return aiohttp.TCPConnector(
        resolver=CheckedResolver(destinations),
        use_dns_cache=False,
        limit=limit,
        limit_per_host=limit_per_host,
        socket_factory=open_socket,
    )
