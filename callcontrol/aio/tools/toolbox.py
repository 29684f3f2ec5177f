"""All that has to do with tools, wired together."""

from collections.abc import Mapping

from callcontrol.aio.database import Database
from callcontrol.aio.keys import KeyService
from callcontrol.aio.tools.app_keys import AppKeys
from callcontrol.aio.tools.builtin import Builtin
from callcontrol.aio.tools.http_tools import HttpToolClient
from callcontrol.aio.tools.registry import ToolRegistry
from callcontrol.aio.tools.service import ToolService
from callcontrol.aio.tools.usage import UsageStore
from callcontrol.aio.writer import Writer
from callcontrol.interfaces import Destinations

__all__ = ["Toolbox"]


class Toolbox:
    """
    The tools of a server.

    Attributes:
        registry: Tools as their accounts manage them.
        service: Tools as they are used.
        usage: How often they were.
        app_keys: The keys that open them.
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
        """Bring what is at work to its end, and close all connections."""
        await self.service.close()
