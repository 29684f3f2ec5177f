"""
Loader that keeps the in-memory directory up to date with the database.

Changes of this process are applied at once, those of other processes within a second, or as soon as
PostgreSQL notifies this one. A failed lookup may only be early, so it queries the database, too.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tasks import ended
from callcontrol.database.aio.database import Database
from callcontrol.database.revisions import revision
from callcontrol.directory.directory import Changes, Directory
from callcontrol.errors import DomainError

if TYPE_CHECKING:
    from sip.aio import NameServer, Resolver

log = logging.getLogger(__name__)

POLL_S: Final = 0.5
_MISS_SPACING_S: Final = 0.1
_RESOLVE_EVERY_S: Final = 60.0
_RESOLVE_AGAIN_S: Final = 6.0
_RESOLVE_TIMEOUT_S: Final = 5.0


class DirectoryLoader(Directory):
    """
    Directory of this process, with its loader.

    ``changes_since`` reads the changes after a revision. Until ``start`` it stays empty, and ``refresh`` does
    nothing: a command that changes rows beside a server needs no directory. ``outbound_proxy`` is that of
    ``Directory``.
    """

    def __init__(
        self,
        database: Database,
        changes_since: Callable[[Connection, int], Changes],
        name_servers: "Sequence[NameServer]" = (),
        outbound_proxy: str | None = None,
    ) -> None:
        super().__init__(outbound_proxy)
        self._database = database
        self._changes_since = changes_since
        self._name_servers = name_servers
        self._resolver: Resolver | None = None
        self._started = False
        self._unresolved = False
        self._loading = asyncio.Lock()
        self._due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._resolving: asyncio.Task[None] | None = None
        self._resolved_at = float("-inf")
        self._resolved_for: list[str] = []
        self._looked_at = float("-inf")
        self._after_miss: asyncio.Task[None] | None = None
        self._after_miss_began = False

    async def start(self) -> None:
        """Load everything, then follow changes."""
        self._started = True
        await self.refresh()
        if self._resolving is not None:
            # Names that do not resolve in time are added later; the start does not depend on DNS.
            await asyncio.wait([self._resolving], timeout=_RESOLVE_TIMEOUT_S)
        self._task = asyncio.create_task(self._follow(), name="directory-loader")

    async def close(self) -> None:
        """Stop following."""
        for task in (self._task, self._resolving, self._after_miss):
            await ended(task)
        self._task = self._resolving = self._after_miss = None
        if self._resolver is not None:
            self._resolver.close()

    async def refresh(self) -> None:
        """
        Load all changes committed before this call.

        Raises:
            ServiceUnavailable: The database does not answer; the directory stays unchanged.
        """
        if not self._started:
            return
        async with self._loading:
            seen = self.revision
            if await self._database.look_up(revision) != seen:
                self.apply(
                    await self._database.read(lambda connection: self._changes_since(connection, seen))
                )
        self._looked_at = asyncio.get_running_loop().time()
        self._resolve_names()

    def look(self) -> None:
        """Load changes now, beside the caller, instead of at the next poll."""
        self._due.set()

    def hear(self, revision: str) -> None:
        """Load changes up to a revision that another process has committed."""
        if not revision.isdecimal() or int(revision) > self.revision:
            self.look()

    async def refresh_after_miss(self) -> None:
        """
        Load all changes committed before this call; never raises.

        All failed lookups share one query every tenth of a second.
        """
        if self._after_miss is not None and self._after_miss_began:
            # That query may have read before the missing row was committed.
            await asyncio.shield(self._after_miss)
        if self._after_miss is None or self._after_miss.done():
            self._after_miss_began = False
            self._after_miss = asyncio.create_task(self._refresh_soon(), name="directory-miss")
        await asyncio.shield(self._after_miss)

    async def _refresh_soon(self) -> None:
        wait_s = self._looked_at + _MISS_SPACING_S - asyncio.get_running_loop().time()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        self._after_miss_began = True
        with contextlib.suppress(DomainError):
            await self.refresh()

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._due.wait()
            self._due.clear()
            try:
                await self.refresh()
            except DomainError:
                log.debug("the directory could not be refreshed; what is known stays as it is")
            except Exception:
                # A defect in one refresh must not stop the later ones.
                log.exception("refreshing the directory failed; what is known stays as it is")

    def _resolve_names(self) -> None:
        hosts = self.named_hosts()
        now = asyncio.get_running_loop().time()
        running = self._resolving is not None and not self._resolving.done()
        every_s = _RESOLVE_AGAIN_S if self._unresolved else _RESOLVE_EVERY_S
        due = hosts != self._resolved_for or now - self._resolved_at >= every_s
        if hosts and due and not running:
            self._resolved_at = now
            self._resolved_for = hosts
            self._resolving = asyncio.create_task(self._resolve(hosts), name="gateway-names")

    async def _resolve(self, hosts: list[str]) -> None:
        found = await asyncio.gather(*(self._look_up(host) for host in hosts))
        self._unresolved = not all(found)
        # A name that does not resolve keeps its last addresses: a DNS failure must not lock out a carrier.
        known = self._addresses
        self.set_addresses({host: new or known.get(host, ()) for host, new in zip(hosts, found, strict=True)})

    async def _look_up(self, host: str) -> tuple[str, ...]:
        """Addresses that a named gateway may call from: of its name, and of the servers it resolves to."""
        if self._resolver is None:
            # Imported with the DNS library for the first gateway that is a name.
            from sip.aio import Resolver

            self._resolver = Resolver(self._name_servers)
        found: tuple[str, ...] = ()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_RESOLVE_TIMEOUT_S):
                found = await self._resolver.addresses(host)
        if not found:
            log.warning("the gateway host %s does not resolve", host)
        return found
