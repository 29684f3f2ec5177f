"""Connector of HTTP clients that check every address of a customer's host before they connect."""

import errno
import socket
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import DomainError


class CheckedResolver(AbstractResolver):
    """``Destinations`` as aiohttp's resolver: the client connects only to checked addresses."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve and check; a forbidden address raises ``OSError``."""
        try:
            addresses = await self._destinations.resolve(host, port, False)
        except DomainError as refusal:
            # aiohttp's own errors repeat ``strerror``.
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
        """Do nothing: there are no resources."""


def checked_connector(
    destinations: Destinations, *, limit: int = 100, limit_per_host: int = 8
) -> aiohttp.TCPConnector:
    """
    Connector that resolves and checks the host of every new connection.

    aiohttp does not resolve hosts written as addresses, and URL parsers accept more spellings of an address
    than ``check_url`` may foresee. So the address of every socket is checked again before it is opened.
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
