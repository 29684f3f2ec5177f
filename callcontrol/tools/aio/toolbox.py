"""The services of tools, wired together."""

from collections.abc import Mapping

from callcontrol.accounts.aio.keys import KeyService
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.egress.url_policy import Destinations
from callcontrol.tools.aio.app_keys import AppKeys
from callcontrol.tools.aio.builtin import Builtin
from callcontrol.tools.aio.http_tools import HttpToolClient
from callcontrol.tools.aio.registry import ToolRegistry
from callcontrol.tools.aio.service import ToolService
from callcontrol.tools.aio.usage import UsageStore

__all__ = ["Toolbox"]


class Toolbox:
    """
    The tools of a server.

    Attributes:
        registry: Tools as their accounts manage them.
        service: Listing and use of tools.
        usage: Counts of their use.
        app_keys: The keys that allow their use.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        destinations: Destinations,
        keys: KeyService,
        builtin: Mapping[str, Builtin],
    ) -> None:
        self.registry = ToolRegistry(database, writer, destinations, builtin)
        self.usage = UsageStore(database, writer)
        self.service = ToolService(database, self.registry, self.usage, HttpToolClient(destinations), builtin)
        self.app_keys = AppKeys(keys, self.registry)

    async def close(self) -> None:
        """Wait for the end of running tools, and close all connections."""
        await self.service.close()
