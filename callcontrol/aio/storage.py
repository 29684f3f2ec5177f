"""Everything that is stored, opened and closed together."""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Sequence
from typing import Final

from callcontrol.aio.accounts import AccountService
from callcontrol.aio.applications import ApplicationService
from callcontrol.aio.call_store import CallStore
from callcontrol.aio.database import Database
from callcontrol.aio.destinations import DestinationGuard
from callcontrol.aio.directory_loader import DirectoryLoader
from callcontrol.aio.idempotency import IdempotencyStore
from callcontrol.aio.keys import KeyService
from callcontrol.aio.numbers import DEFAULT_COUNTRIES, NumberService
from callcontrol.aio.outbox import Outbox, OutboxSettings
from callcontrol.aio.trunks import TrunkService
from callcontrol.aio.wallet import WalletService
from callcontrol.aio.writer import Writer, WriterSettings
from callcontrol.errors import DomainError
from sip.aio import NameServer

log = logging.getLogger(__name__)

_PURGE_EVERY_S: Final = 3600.0


class Storage:
    """
    The database and the services over it.

    Attributes:
        database: For reading.
        writer: For writing.
        directory: Accounts, numbers and trunks in memory, followed.
        destinations: Judges where webhooks and streams may go.
        outbox: Delivers webhooks.
        calls, wallet, accounts, keys, numbers, applications, trunks, idempotency: The services.
    """

    def __init__(
        self,
        database: Database,
        *,
        node: str = "local",
        allow_private_destinations: bool = False,
        allowed_countries: Collection[str] = DEFAULT_COUNTRIES,
        settings: WriterSettings | None = None,
        name_servers: Sequence[NameServer] = (),
    ) -> None:
        self.database = database
        self.writer = Writer(database, settings or WriterSettings(node=node))
        self.directory = DirectoryLoader(database, name_servers)
        self.destinations = DestinationGuard(allow_private_destinations)
        self.outbox = Outbox(self.writer, self.destinations, self._secrets_of, OutboxSettings(node=node))
        self.calls = CallStore(database, self.writer, self.outbox, node=node)
        self.wallet = WalletService(database, self.writer)
        self.keys = KeyService(database, self.writer)
        self.accounts = AccountService(database, self.writer, self.keys, self.directory)
        self.numbers = NumberService(
            database, self.writer, self.directory, self.destinations, allowed_countries
        )
        self.applications = ApplicationService(
            database, self.writer, self.directory, self.destinations, allowed_countries
        )
        self.trunks = TrunkService(database, self.writer, self.directory)
        self.idempotency = IdempotencyStore(self.writer)
        self._housekeeping: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        node: str = "local",
        allow_private_destinations: bool = False,
        allowed_countries: Collection[str] = DEFAULT_COUNTRIES,
        deliver: bool = True,
        settings: WriterSettings | None = None,
        name_servers: Sequence[NameServer] = (),
    ) -> "Storage":
        """
        Open a database, bring its schema up to date and start the services.

        Args:
            url: See ``Database.open``.
            node: The name of this process among those that share the database; the same after a restart,
                so that it finds what its former run left behind.
            allow_private_destinations: Let webhooks and streams reach private addresses and plain HTTP.
            allowed_countries: Where numbers may be forwarded to, as ISO 3166 codes.
            deliver: Deliver webhooks. A process beside the server, such as the command line, must not: it
                would take over what the server has in its hands.
            settings: How the writer trades delay for work.
            name_servers: Who is asked for gateways that are named; those of the system when empty.
        """
        database = await Database.open(url)
        storage = cls(
            database,
            node=node,
            allow_private_destinations=allow_private_destinations,
            allowed_countries=allowed_countries,
            settings=settings,
            name_servers=name_servers,
        )
        try:
            await storage.writer.start()
            await storage.directory.start()
            if deliver:
                await storage.outbox.start()
        except BaseException:
            await storage.close()
            raise
        storage._housekeeping = asyncio.create_task(storage._keep_house(), name="database-housekeeping")
        return storage

    async def refresh(self) -> None:
        """Something was looked up in the directory and not found: it may be there by now. Never fails."""
        await self.directory.refresh_after_miss()

    async def close(self) -> None:
        """Stop delivering, write what is held and close everything."""
        if self._housekeeping is not None:
            self._housekeeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._housekeeping
            self._housekeeping = None
        await self.directory.close()
        await self.outbox.close()
        await self.writer.close()
        await self.database.close()

    def _secrets_of(self, account_sid: str) -> Sequence[str]:
        account = self.directory.account(account_sid)
        return (account.webhook_secret,) if account is not None else ()

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(_PURGE_EVERY_S)
            try:
                await self.idempotency.purge()
            except DomainError as error:
                log.warning("old idempotency keys could not be deleted: %s", error)
