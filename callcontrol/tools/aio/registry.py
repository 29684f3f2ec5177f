"""Tools that accounts define, and the enabled ones of all tools: registered, changed, deleted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, new_webhook_secret, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import Conflict, DomainError, NotFound, ValidationFailed
from callcontrol.tools.builtin import BUILTIN
from callcontrol.tools.definitions import HttpTool, changed_tool, new_tool
from callcontrol.tools.models import Tool
from callcontrol.tools.store import tools
from callcontrol.webhooks.aio.subscriptions import reach_errors

MAX_TOOLS: Final = 100


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """A tool as its account manages it; ``http`` is None for a built-in tool."""

    tool: Tool
    http: HttpTool | None = None


class ToolRegistry:
    """
    The tools of accounts.

    ``builtin`` are the names of the built-in tools that this server has; ``changed`` is called when the tools
    of an account have changed.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        destinations: Destinations,
        builtin: Mapping[str, Any],
        changed: Callable[[], None],
    ) -> None:
        self._database = database
        self._writer = writer
        self._destinations = destinations
        self._builtin = {name: tool for name, tool in BUILTIN.items() if name in builtin}
        self._changed = changed

    async def list(self, account_sid: str) -> list[RegisteredTool]:
        """All tools of the account, including disabled ones, by name."""
        defined, off = await self._database.read(partial(_all, account_sid))
        built_in = [RegisteredTool(_marked(tool, off)) for tool in self._builtin.values()]
        own = [_registered(tool, off) for tool in defined]
        return sorted([*built_in, *own], key=lambda registered: registered.tool.name)

    async def get(self, account_sid: str, name: str) -> RegisteredTool:
        """
        One tool of the account.

        Raises:
            NotFound: The tool does not exist.
        """
        found, off = await self._database.look_up(partial(_one, account_sid, name))
        if found is not None:
            return _registered(found, off)
        if name in self._builtin:
            return RegisteredTool(_marked(self._builtin[name], off))
        raise _no_such_tool()

    async def register(self, account_sid: str, values: Mapping[str, Any]) -> HttpTool:
        """
        Define a tool; its secret cannot be shown again.

        Raises:
            ValidationFailed: Names every wrong, missing or unknown field; also raised if the
                URL leads where this server does not go.
            Conflict: The account has a tool of this name, or the maximum number of tools.
        """
        made = await self._validated(
            partial(new_tool, new_id(), account_sid, values, secret=new_webhook_secret(), now=utc_now()),
            values,
        )

        def write(connection: Connection) -> DomainError | None:
            tools.begin_change(connection, account_sid)
            former = tools.get(connection, account_sid, made.name)
            if former is not None and former.tool_id != made.tool_id:
                return Conflict(f"The account has a tool {made.name}; change or delete it.")
            if former is not None:
                return None  # The answer to a first commit was lost.
            if tools.count(connection, account_sid) >= MAX_TOOLS:
                return Conflict(f"The account has {MAX_TOOLS} tools; delete one first.")
            tools.insert(connection, made)
            return None

        await self._writer.commit(write)
        self._changed()
        return made

    async def update(self, account_sid: str, name: str, values: Mapping[str, Any]) -> RegisteredTool:
        """
        Change the given fields; the change applies to the next use.

        Raises:
            NotFound: The tool does not exist.
            Conflict: The tool is built in.
            ValidationFailed: Names every wrong or unknown field.
        """
        former, now = self._own(await self.get(account_sid, name)), utc_now()
        await self._validated(partial(changed_tool, former, values, now), values)

        def write(connection: Connection) -> RegisteredTool | DomainError:
            tools.begin_change(connection, account_sid)
            owned = tools.get(connection, account_sid, name, lock=True)
            if owned is None:
                return _no_such_tool()
            changed = changed_tool(owned, values, now)
            tools.update(connection, changed)
            return _registered(changed, tools.disabled(connection, account_sid))

        changed = await self._writer.commit(write)
        self._changed()
        return changed

    async def set_enabled(self, account_sid: str, name: str, *, enabled: bool) -> RegisteredTool:
        """
        Enable or disable a tool, built-in or not; repeating it changes nothing.

        Raises:
            NotFound: The tool does not exist.
        """

        def write(connection: Connection) -> DomainError | None:
            tools.begin_change(connection, account_sid)
            if name not in self._builtin and tools.get(connection, account_sid, name) is None:
                return _no_such_tool()
            tools.set_enabled(connection, account_sid, name, enabled=enabled)
            return None

        await self._writer.commit(write)
        self._changed()
        return await self.get(account_sid, name)

    async def delete(self, account_sid: str, name: str) -> None:
        """
        Delete a tool that the account has defined.

        Raises:
            NotFound: The tool does not exist.
            Conflict: The tool is built in.
        """
        former = self._own(await self.get(account_sid, name))

        def write(connection: Connection) -> None:
            tools.begin_change(connection, account_sid)
            tools.delete(connection, former)

        await self._writer.commit(write)
        self._changed()

    def _own(self, registered: RegisteredTool) -> HttpTool:
        if registered.http is None:
            raise Conflict("This tool is built in: it can be disabled and enabled, not changed or deleted.")
        return registered.http

    async def _validated(self, make: Callable[[], HttpTool], values: Mapping[str, Any]) -> HttpTool:
        """Make the tool and check the reach of its URL; one refusal names all errors."""
        errors = []
        if isinstance(values.get("url"), str) and values["url"]:
            errors += await reach_errors(self._destinations, values["url"])
        try:
            made = make()
        except ValidationFailed as refusal:
            raise ValidationFailed([*refusal.errors, *errors]) from None
        if errors:
            raise ValidationFailed(errors)
        return made


async def tool_names(database: Database, account_sid: str) -> frozenset[str]:
    """Names of the tools of an account: the built-in ones and its own, disabled ones too."""
    defined = await database.read(lambda connection: tools.of_account(connection, account_sid))
    return frozenset(BUILTIN).union(tool.name for tool in defined)


def _no_such_tool() -> NotFound:
    return NotFound("There is no such tool on the account.")


def _all(account_sid: str, connection: Connection) -> tuple[list[HttpTool], frozenset[str]]:
    return tools.of_account(connection, account_sid), tools.disabled(connection, account_sid)


def _one(account_sid: str, name: str, connection: Connection) -> tuple[HttpTool | None, frozenset[str]]:
    return tools.get(connection, account_sid, name), tools.disabled(connection, account_sid)


def _registered(tool: HttpTool, off: frozenset[str]) -> RegisteredTool:
    return RegisteredTool(tool.described(is_enabled=tool.name not in off), tool)


def _marked(tool: Tool, off: frozenset[str]) -> Tool:
    return replace(tool, is_enabled=tool.name not in off)
