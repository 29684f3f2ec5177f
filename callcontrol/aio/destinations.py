"""Resolve a customer's host once, have every address judged, and connect to those addresses only."""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from callcontrol.destinations import check_url, judge, literal_address
from callcontrol.errors import DestinationForbidden, DomainError
from callcontrol.interfaces import Destinations

__all__ = ["CheckedResolver", "DestinationGuard", "checked_connector"]

_RESOLVE_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class DestinationGuard:
    """
    The guard of this process; implements ``callcontrol.interfaces.Destinations``.

    A host that resolves to a forbidden address among others is refused whole: whoever controls the name
    would otherwise choose which of them is met.
    """

    allow_private: bool = False

    def check_url(self, url: str, *, schemes: Sequence[str]) -> None:
        """Refuse a URL that can be seen to be wrong without resolving; see ``callcontrol.destinations``."""
        check_url(url, schemes=schemes, allow_private=self.allow_private)

    async def resolve(self, host: str, port: int, tls: bool) -> list[Any]:
        """
        Resolve a host and return the socket addresses that may be connected to.

        Raises:
            DestinationForbidden: One of its addresses must not be connected to.
            OSError: It does not resolve, or not in five seconds.
        """
        literal = literal_address(host)
        try:
            async with asyncio.timeout(_RESOLVE_TIMEOUT_S):
                found = await asyncio.get_running_loop().getaddrinfo(
                    str(literal) if literal is not None else host,
                    port,
                    type=socket.SOCK_STREAM,
                    proto=socket.IPPROTO_TCP,
                )
        except TimeoutError as error:
            raise OSError(f"{host} did not resolve in {_RESOLVE_TIMEOUT_S:.0f} s") from error
        except UnicodeError as error:
            raise OSError(f"{host} is not a host name") from error
        addresses = [entry[4] for entry in found]
        for address in addresses:
            self._judge(host, str(address[0]))
        return addresses

    def _judge(self, host: str, address: str) -> None:
        reason = judge(ip_address(address.partition("%")[0]), allow_private=self.allow_private)
        if reason is not None:
            raise DestinationForbidden(f"{host} resolves to {address}, which {reason}.")


class CheckedResolver(AbstractResolver):
    """``Destinations`` as aiohttp's resolver: its client connects to judged addresses or not at all."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Resolve and judge; a refusal surfaces as a connection error."""
        try:
            addresses = await self._destinations.resolve(host, port, False)
        except DomainError as refusal:
            raise OSError(refusal.message) from None
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

    aiohttp asks no resolver about hosts that are written as addresses; ``check_url`` has to judge those.
    """
    return aiohttp.TCPConnector(
        resolver=CheckedResolver(destinations),
        use_dns_cache=False,
        limit=limit,
        limit_per_host=limit_per_host,
    )
