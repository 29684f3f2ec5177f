"""Everything that is stored, opened and closed together."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from callcontrol.aio.accounts import AccountService
from callcontrol.aio.call_store import CallStore, EventSink
from callcontrol.aio.database import Database
from callcontrol.aio.directory_loader import DirectoryLoader
from callcontrol.aio.idempotency import IdempotencyStore
from callcontrol.aio.keys import KeyService
from callcontrol.aio.numbers import NumberService
from callcontrol.aio.trunks import TrunkService
from callcontrol.aio.wallet import WalletService
from callcontrol.aio.writer import Writer, WriterSettings
from callcontrol.errors import DomainError
from callcontrol.models import WebhookEvent

log = logging.getLogger(__name__)

_PURGE_EVERY_S: Final = 3600.0

MakeSink = Callable[[Database, Writer, DirectoryLoader], EventSink]


class NoEvents:
    """Publishes nothing: for the command line, which runs no calls."""

    def rows(self, events: Sequence[WebhookEvent]) -> list[dict[str, Any]]:
        """No rows."""
        return []

    def committed(self, events: Sequence[WebhookEvent]) -> None:
        """Nothing is delivered."""


class Storage:
    """
    The database and the services over it.

    Attributes:
        database: For reading.
        writer: For writing.
        directory: Accounts, numbers and trunks in memory, followed.
        calls, wallet, accounts, keys, numbers, trunks, idempotency: The services.
    """

    def __init__(
        self, database: Database, *, node: str, make_sink: MakeSink, settings: WriterSettings | None = None
    ) -> None:
        self.database = database
        self.writer = Writer(database, settings or WriterSettings(node=node))
        self.directory = DirectoryLoader(database)
        self.events = make_sink(database, self.writer, self.directory)
        self.calls = CallStore(database, self.writer, self.events, node=node)
        self.wallet = WalletService(database, self.writer)
        self.keys = KeyService(database, self.writer)
        self.accounts = AccountService(database, self.writer, self.keys, self.directory)
        self.numbers = NumberService(database, self.writer, self.directory)
        self.trunks = TrunkService(database, self.writer, self.directory)
        self.idempotency = IdempotencyStore(self.writer)
        self._housekeeping: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        node: str = "local",
        make_sink: MakeSink | None = None,
        settings: WriterSettings | None = None,
    ) -> "Storage":
        """
        Open a database, bring its schema up to date and start the services.

        Args:
            url: See ``Database.open``.
            node: The name of this process among those that share the database; the same after a restart,
                so that it finds what its former run left behind.
            make_sink: Makes what events of calls are handed to; without it events are dropped.
            settings: How the writer trades delay for work.
        """
        database = await Database.open(url)
        storage = cls(database, node=node, make_sink=make_sink or (lambda *_: NoEvents()), settings=settings)
        try:
            await storage.writer.start()
            await storage.directory.start()
        except BaseException:
            await storage.close()
            raise
        storage._housekeeping = asyncio.create_task(storage._keep_house(), name="database-housekeeping")
        return storage

    async def close(self) -> None:
        """Write what is held and close everything; the sink is closed by whoever made it, before this."""
        if self._housekeeping is not None:
            self._housekeeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._housekeeping
            self._housekeeping = None
        await self.directory.close()
        await self.writer.close()
        await self.database.close()

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(_PURGE_EVERY_S)
            try:
                await self.idempotency.purge()
            except DomainError as error:
                log.warning("old idempotency keys could not be deleted: %s", error)
