"""Resolver that checks every address of a customer's host."""

import asyncio
import errno
import socket
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from callcontrol.egress.url_policy import (
    STREAM_SCHEMES,
    CheckUrl,
    check_url,
    forbidden_reason,
    literal_address,
    refused,
)

_RESOLVE_TIMEOUT_S: Final = 5.0
_MAX_LOOKUPS: Final = 256
_MAX_LOOKUPS_OF_A_DOMAIN: Final = 16
_MAX_CHECKED: Final = 1024

SocketAddress = tuple[Any, ...]
Lookup = Callable[[str, int], Sequence[SocketAddress]]


def _system_lookup(host: str, port: int) -> Sequence[SocketAddress]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [entry[4] for entry in found]


class DestinationGuard:
    """
    Destination checks of this process; implements ``callcontrol.egress.url_policy.Destinations``.

    A host with one forbidden address is rejected as a whole: otherwise the owner of the name could choose
    which address is used.

    Lookups run on their own threads, one per host, because a name server that never answers blocks its
    thread until the system's resolver times out; on the event loop's shared threads a few of these names
    would delay all others. Names of one domain get only a part of the threads.

    Args:
        allow_private: Let this server connect to its own network.
        lookup: System lookup function; it may block.
    """

    def __init__(self, allow_private: bool = False, *, lookup: Lookup = _system_lookup) -> None:
        self.allow_private = allow_private
        self._lookup = lookup
        self._own: dict[str, tuple[str, int]] = {}
        # An accepted URL is checked again at every request to it.
        self.check_url: CheckUrl = lru_cache(_MAX_CHECKED)(self._check_url)
        """Rejects a URL that is forbidden without resolving it; see ``Destinations.check_url``."""
        self._lookups: dict[tuple[str, int], asyncio.Future[Sequence[SocketAddress]]] = {}

    def permit(self, url: str) -> None:
        """Permit streams to an agent of this process at a ws: URL on loopback, and to nothing else there."""
        parts = urlsplit(url)
        assert parts.scheme == "ws" and parts.hostname and parts.port
        self._own[url] = (parts.hostname, parts.port)

    def _check_url(self, url: str, *, schemes: Sequence[str], field: str = "url") -> SplitResult:
        if url in self._own and schemes == STREAM_SCHEMES:
            return urlsplit(url)
        return check_url(url, schemes=schemes, allow_private=self.allow_private, field=field)

    async def resolve(self, host: str, port: int, tls: bool) -> list[Any]:
        """
        Resolve a host and return the socket addresses that may be connected to.

        Raises:
            DestinationForbidden: One of its addresses must not be connected to.
            OSError: It does not resolve within five seconds.
        """
        literal = literal_address(host)
        if not tls and (host, port) in self._own.values():
            return [(host, port)]
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
        """Lookup of a host; concurrent callers share it."""
        key = (host, port)
        found = self._lookups.get(key)
        if found is not None:
            return found
        # Silent name servers mostly belong to one domain, whatever its host names.
        domain = _domain(host)
        under_way = sum(_domain(other) == domain for other, _ in self._lookups)
        if len(self._lookups) >= _MAX_LOOKUPS or under_way >= _MAX_LOOKUPS_OF_A_DOMAIN:
            raise OSError(errno.EAGAIN, "too many host names are being resolved")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence[SocketAddress]] = loop.create_future()
        self._lookups[key] = future
        future.add_done_callback(lambda done: self._asked(key, done))
        # A daemon thread, so that a silent name server does not delay the end of the process.
        threading.Thread(
            target=self._run, args=(host, port, future, loop), name=f"resolve-{host[:40]}", daemon=True
        ).start()
        return future

    def _asked(self, key: tuple[str, int], done: "asyncio.Future[Sequence[SocketAddress]]") -> None:
        del self._lookups[key]
        if not done.cancelled():
            done.exception()  # Waiters get the error; there may be none left.

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
            # Raised where the look-up is awaited: this thread has no caller.
            outcome = error
        try:
            loop.call_soon_threadsafe(_settle, future, outcome)
        except RuntimeError:
            return  # The loop was closed meanwhile.

    def _judge(self, host: str, address: str) -> None:
        reason = forbidden_reason(ip_address(address.partition("%")[0]), allow_private=self.allow_private)
        if reason is not None:
            # The address is omitted: customers must not learn what internal names resolve to.
            raise refused(host, reason)


def _domain(host: str) -> str:
    """Registered domain of a name: two labels, or three if the second last is short (``co.in``)."""
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
