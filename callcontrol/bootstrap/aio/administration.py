"""Composition of what the command line changes, beside a server and without one."""

import logging
from functools import cached_property, partial
from typing import TYPE_CHECKING

from callcontrol.bootstrap import reseal as sealed_rows
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import Conflict, NotFound, SecretsUnreadable
from callcontrol.secrets.aio import SecretBox

if TYPE_CHECKING:
    from callcontrol.accounts.aio.accounts import AccountService
    from callcontrol.accounts.aio.keys import KeyService
    from callcontrol.accounts.aio.sessions import OperatorSessions
    from callcontrol.directory.aio.loader import DirectoryLoader
    from callcontrol.nodes.lease import NodeReport
    from callcontrol.numbers.aio.service import NumberService
    from callcontrol.trunks.aio.service import TrunkService
    from callcontrol.wallet.aio import WalletService

log = logging.getLogger(__name__)


class Administration:
    """
    Database and the services on it that an operator's command uses.

    A command uses one or two of them and should answer at once. So each is imported when it is first used, no
    directory is loaded, and nothing is done in the background.

    Attributes:
        database: For reading.
        writer: For writing.
        accounts, keys, operators, numbers, trunks, wallet: The services, as in ``Storage``.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.writer = Writer(database)

    @classmethod
    async def open(cls, url: str, secrets: SecretBox) -> "Administration":
        """
        Open a database and bring its schema up to date.

        Raises:
            ValueError: The URL names no supported database.
            SecretsUnreadable: The database is sealed with a key that this process does not have.
        """
        opened = cls(await Database.open(url, secrets=secrets))
        try:
            await opened.writer.start()
            await seal_secrets(opened.database, opened.writer, secrets)
        except BaseException:
            await opened.close()
            raise
        return opened

    async def close(self) -> None:
        """Write all pending changes and close the database."""
        await self.writer.close()
        await self.database.close()

    async def nodes(self) -> "list[NodeReport]":
        """Nodes that share the database, by name; empty for SQLite."""
        from callcontrol.nodes import store

        if self.database.shared is None:
            return []
        return await self.database.read(store.reports)

    async def node(self, name: str) -> "NodeReport | None":
        """One of the nodes that share the database."""
        return next((found for found in await self.nodes() if found.node.node == name), None)

    async def drain_node(self, name: str) -> bool:
        """
        Ask a node to drain, which it does at its next renewal; False if it drains already.

        Raises:
            NotFound: There is no such node.
            Conflict: It is dead, or the database has one server and no nodes.
        """
        from callcontrol.nodes import store

        if self.database.shared is None:
            raise Conflict("A server on SQLite is no node; SIGTERM drains it.")
        if await self.writer.commit(partial(store.drain, node=name)):
            return True
        found = await self.node(name)
        if found is None:
            raise NotFound(f"There is no node {name}.")
        if not found.node.is_living:
            raise Conflict(f"The node {name} is dead; another one ends its calls.")
        return False

    @cached_property
    def keys(self) -> "KeyService":
        """API keys."""
        from callcontrol.accounts.aio.keys import KeyService

        return KeyService(self.database, self.writer)

    @cached_property
    def accounts(self) -> "AccountService":
        """Accounts."""
        from callcontrol.accounts.aio.accounts import AccountService

        return AccountService(self.database, self.writer, self.keys, self._directory.refresh)

    @cached_property
    def operators(self) -> "OperatorSessions":
        """Sessions of operators of the console."""
        from callcontrol.accounts.aio.sessions import OperatorSessions

        return OperatorSessions(self.database, self.writer)

    @cached_property
    def wallet(self) -> "WalletService":
        """Wallets."""
        from callcontrol.wallet.aio import WalletService

        return WalletService(self.database, self.writer)

    @cached_property
    def numbers(self) -> "NumberService":
        """Numbers of accounts."""
        from callcontrol.egress.aio.resolver import DestinationGuard
        from callcontrol.numbers.aio.service import NumberService

        return NumberService(self.database, self.writer, self._directory, DestinationGuard())

    @cached_property
    def trunks(self) -> "TrunkService":
        """Carriers and gateways."""
        from callcontrol.trunks.aio.service import TrunkService

        return TrunkService(self.database, self.writer, self._directory)

    @cached_property
    def _directory(self) -> "DirectoryLoader":
        """A directory that stays empty: services refresh it after a change, and no command looks into it."""
        from callcontrol.bootstrap.directory_rows import changes_since
        from callcontrol.directory.aio.loader import DirectoryLoader

        return DirectoryLoader(self.database, changes_since)


async def seal_secrets(
    database: Database, writer: Writer, secrets: SecretBox, *, thorough: bool = False
) -> None:
    """
    Reject a wrong key, and seal all secrets with the first key.

    With ``thorough`` all secrets are checked: those of an earlier version may be in the clear, and during a
    rotation other processes may have sealed some with the previous first key.

    Raises:
        SecretsUnreadable: The database is sealed with a key that this process does not have.
    """
    current = await database.read(sealed_rows.sample_is_current)
    if current and not (thorough and await database.read(sealed_rows.any_stale)):
        return
    count = await writer.commit(sealed_rows.reseal_all)
    if isinstance(count, SecretsUnreadable):
        raise count
    if count:
        log.info("%d secrets were encrypted with the key %s", count, secrets.key_names[0])
