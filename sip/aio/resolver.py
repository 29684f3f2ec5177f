"""Host names of peers, looked up without holding up the loop and remembered for a while."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from functools import lru_cache

__all__ = ["Resolver", "is_address", "is_private"]

FOUND_FOR_S = 60.0
MISSING_FOR_S = 5.0
MAX_REMEMBERED = 1024
MAX_LOOKUPS = 64
LOOKUP_TIMEOUT_S = 4.0

Found = Callable[[str | None], None]


@lru_cache(maxsize=1024)
def is_address(host: str) -> bool:
    """Whether a host is an IP address literal."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_private(host: str) -> bool:
    """Whether a host is an address that only means something within its own network."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False


class Resolver:
    """
    Finds the address of a host name by the system's resolver.

    Answers are remembered, bad news too but shorter; lookups of one name share one query. Beyond a
    bound of queries at work, names count as not found, so a dead name server costs calls to names
    only. The first address of a family we can send from is taken, in the order the system gives
    them. SRV and NAPTR records are not looked up: trunks name the hosts and ports of their gateways.
    """

    def __init__(self) -> None:
        self.families: frozenset[int] = frozenset((socket.AF_INET,))
        self._known: dict[str, tuple[float, str | None]] = {}
        self._waiting: dict[str, list[Found]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def find(self, host: str, found: Found) -> None:
        """Call `found` with an address or None, at once when the answer is known."""
        known = self._known.get(host)
        if known is not None and known[0] > asyncio.get_running_loop().time():
            found(known[1])
            return
        waiting = self._waiting.get(host)
        if waiting is not None:
            waiting.append(found)
        elif len(self._waiting) >= MAX_LOOKUPS:
            found(None)
        else:
            self._waiting[host] = [found]
            task = asyncio.create_task(self._look_up(host))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Stop all lookups; nobody is told."""
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()

    async def _look_up(self, host: str) -> None:
        loop = asyncio.get_running_loop()
        address: str | None = None
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                answers = await loop.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
            address = next((str(answer[4][0]) for answer in answers if answer[0] in self.families), None)
        except (OSError, UnicodeError, TimeoutError):
            address = None
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        lifetime_s = MISSING_FOR_S if address is None else FOUND_FOR_S
        self._known[host] = (loop.time() + lifetime_s, address)
        for found in self._waiting.pop(host, ()):
            found(address)
