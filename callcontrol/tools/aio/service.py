"""Listing and use of tools by the key of an app: each use and their number are limited."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from callcontrol.accounts.aio.keys import KeyService
from callcontrol.accounts.keys import tools_of
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import (
    Conflict,
    DomainError,
    NodeUnreachable,
    NotFound,
    RateLimited,
    ToolTimedOut,
    ValidationFailed,
)
from callcontrol.histogram import Histogram
from callcontrol.model_keys.aio import ModelKeys
from callcontrol.models import Principal
from callcontrol.tools.aio.app_keys import AppKeys
from callcontrol.tools.aio.builtin import Builtin
from callcontrol.tools.aio.http_tools import HttpToolClient
from callcontrol.tools.aio.registry import RegisteredTool, ToolRegistry
from callcontrol.tools.aio.usage import UsageStore
from callcontrol.tools.builtin import number_errors
from callcontrol.tools.models import Tool, ToolResult
from callcontrol.tools.schemas import checked_schema
from callcontrol.tools.store import tools
from media.streams import ModelTool

log = logging.getLogger(__name__)

MAX_AT_ONCE: Final = 20
"""Tools that an account may use at once."""

_MAX_AT_ONCE_IN_ALL: Final = 500
_BUILTIN_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 2.0
_TOOK_S: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_MODEL_KEY_ID: Final = "model"
"""Stands for a key in the counts of use: no key of the account was shown for it."""

Listener = Callable[[str], None]


class ToolService:
    """Tools that keys may use; ``changed`` is set when the tools of an account have changed here."""

    def __init__(
        self,
        database: Database,
        registry: ToolRegistry,
        usage: UsageStore,
        client: HttpToolClient,
        builtin: Mapping[str, Builtin],
        changed: asyncio.Event,
    ) -> None:
        self._database = database
        self._registry = registry
        self._usage = usage
        self._client = client
        self._builtin = builtin
        self.uses: Counter[tuple[str, str]] = Counter()
        """Number of uses of tools, by kind (``builtin``, ``http``) and outcome."""
        self.took_s = Histogram(_TOOK_S)
        self._in_use: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listeners: list[Listener] = []
        self._poller: asyncio.Task[None] | None = None
        self._changed = changed

    async def list(self, principal: Principal) -> Sequence[Tool]:
        """The tools that a key may use now, by name: enabled, and allowed by the key's scopes."""
        limits = tools_of(principal.scopes)
        return [
            registered.tool
            for registered in await self._registry.list(principal.account_sid)
            if registered.tool.is_enabled and (limits is None or registered.tool.name in limits)
        ]

    async def execute(self, principal: Principal, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """
        Execute a tool once.

        Cancelling aborts the HTTP request of an account's own tool; a built-in tool completes what it has
        begun.

        Raises:
            NotFound: The key may use no tool of this name.
            Conflict: The tool is disabled.
            ValidationFailed: With every wrong argument by its path (``arguments.to``).
            ToolFailed: The tool's server did not answer, or not with the declared result.
            ToolTimedOut: The tool exceeded its time limit.
            RateLimited: The account has its maximum of tools in use.
            DomainError: Refusal of a built-in tool, for example `InsufficientBalance`.
        """
        limits = tools_of(principal.scopes)
        if limits is not None and name not in limits:
            raise NotFound(f"There is no tool {name[:64]} that this key may use.")
        found = await self._registry.get(principal.account_sid, name)
        if not found.tool.is_enabled:
            raise Conflict(f"The tool {name} is disabled; have it enabled first.")
        errors = checked_schema(found.tool.input_schema, "input_schema").errors(arguments, "arguments")
        if errors:
            beside = number_errors(found.tool, arguments, "arguments")
            named = {error.field for error in beside}
            raise ValidationFailed([*(error for error in errors if error.field not in named), *beside])
        with self._slot(principal.account_sid):
            return await self._execute(principal, found, arguments)

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with each account whose tools have changed; return a function that stops this."""
        self._listeners.append(listener)
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll_changes(), name="tool-changes")

        def end() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return end

    async def close(self) -> None:
        """Wait for the end of running built-in tools, and close all connections."""
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.wait({self._poller})
            self._poller = None
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._client.close()

    async def _execute(
        self, principal: Principal, found: RegisteredTool, arguments: Mapping[str, Any]
    ) -> ToolResult:
        clock, name = asyncio.get_running_loop().time, found.tool.name
        began = clock()
        outcome: str | None = "failed"
        try:
            if found.http is not None:
                content = await self._client.ask(found.http, arguments)
            else:
                work = self._builtin[name](principal.account_sid, arguments)
                content = await self._run_to_completion(name, work)
            outcome = "ok"
        except ToolTimedOut:
            outcome = "timed_out"
            raise
        except NodeUnreachable:
            outcome = None  # The node that executes it counts it.
            raise
        finally:
            took_s = clock() - began
            duration_ms = round(took_s * 1000)
            if outcome is not None:
                self.uses["http" if found.http is not None else "builtin", outcome] += 1
                self.took_s.observe(took_s)
                self._usage.count(principal, name, failed=outcome != "ok", duration_ms=duration_ms)
        return ToolResult(content, duration_ms)

    async def _run_to_completion(self, name: str, work: Coroutine[Any, Any, Any]) -> Any:
        """Run to the end work that must not be interrupted, even if no caller waits for it any more."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        try:
            async with asyncio.timeout(_BUILTIN_TIMEOUT_S):
                return await asyncio.shield(task)
        except TimeoutError:
            message = f"The tool {name} did not answer within {_BUILTIN_TIMEOUT_S:.0f} s and still runs."
            raise ToolTimedOut(f"{message} Check its effect before you repeat it.") from None

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # A caller that still waits gets it; there may be none.

    @contextlib.contextmanager
    def _slot(self, account_sid: str) -> Iterator[None]:
        """
        Count one use while it lasts.

        Raises:
            RateLimited: The account, or all accounts together, use the maximum number of tools.
        """
        if self._in_use[account_sid] >= MAX_AT_ONCE or self._in_use.total() >= _MAX_AT_ONCE_IN_ALL:
            message = f"The account runs {MAX_AT_ONCE} tools already, or the server is at its limit."
            raise RateLimited(f"{message} Wait for Retry-After.", retry_after_s=1.0)
        self._in_use[account_sid] += 1
        try:
            yield
        finally:
            self._in_use[account_sid] -= 1
            if not self._in_use[account_sid]:
                del self._in_use[account_sid]

    async def _poll_changes(self) -> None:
        """Report changes to the listeners: local ones at once, those of other processes within seconds."""
        seen: int | None = None
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_S if seen is not None else 0):
                    await self._changed.wait()
            self._changed.clear()
            try:
                if seen is None:
                    seen = await self._database.look_up(tools.last_change)
                    continue
                changes = await self._database.look_up(partial(tools.changed_since, seen=seen))
            except DomainError as error:
                log.warning("changes of tools could not be read, trying again: %s", error)
                await asyncio.sleep(_POLL_S)
                continue
            seen = max((seen, *changes.values()))
            for account_sid in changes:
                for listener in list(self._listeners):
                    listener(account_sid)


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
        changed = asyncio.Event()
        self.registry = ToolRegistry(database, writer, destinations, builtin, changed.set)
        self.usage = UsageStore(database, writer)
        self.service = ToolService(
            database, self.registry, self.usage, HttpToolClient(destinations), builtin, changed
        )
        self.app_keys = AppKeys(keys, self.registry)

    async def close(self) -> None:
        """Wait for the end of running tools, and close all connections."""
        await self.service.close()


class AccountModels:
    """
    Stored keys and tools of accounts, for sessions with speech models.

    ``tools`` returns the service, which is built after the calls that use it.
    """

    def __init__(self, keys: ModelKeys, tools: Callable[[], ToolService]) -> None:
        self._keys = keys
        self._tools = tools

    async def api_key(self, account_sid: str, name: str) -> str:
        """
        Return a stored key.

        Raises:
            NotFound: The account has none of this name.
        """
        return await self._keys.secret(account_sid, name)

    async def describe(self, account_sid: str, names: Sequence[str]) -> Sequence[ModelTool]:
        """Return the enabled tools among ``names``."""
        listed = await self._tools().list(call_principal(account_sid))
        return [
            ModelTool(tool.name, tool.description, tool.input_schema) for tool in listed if tool.name in names
        ]

    async def use(self, account_sid: str, name: str, arguments: Mapping[str, Any]) -> str:
        """
        Use a tool, and return its result as text; raises the errors of ``ToolService.execute``.

        The session has checked that the customer allows this tool.
        """
        result = await self._tools().execute(call_principal(account_sid), name, arguments)
        return result.text


def call_principal(account_sid: str) -> Principal:
    """Return who uses a tool in a call of an account, for which no key was shown."""
    return Principal(account_sid, _MODEL_KEY_ID, "tools", frozenset({"tools"}))
