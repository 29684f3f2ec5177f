"""Listing and use of tools by the key of an app: each use and their number are limited."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from callcontrol.accounts.keys import tools_of
from callcontrol.database.aio.database import Database
from callcontrol.errors import Conflict, DomainError, NotFound, RateLimited, ToolTimedOut, ValidationFailed
from callcontrol.histogram import Histogram
from callcontrol.models import Principal
from callcontrol.tools.aio.builtin import Builtin
from callcontrol.tools.aio.http_tools import HttpToolClient
from callcontrol.tools.aio.registry import RegisteredTool, ToolRegistry
from callcontrol.tools.aio.usage import UsageStore
from callcontrol.tools.models import Tool, ToolResult
from callcontrol.tools.schemas import checked_schema
from callcontrol.tools.store import tools

__all__ = ["ToolService"]

log = logging.getLogger(__name__)

MAX_AT_ONCE: Final = 20
"""Tools that an account may use at once."""

_MAX_AT_ONCE_IN_ALL: Final = 500
_BUILTIN_TIMEOUT_S: Final = 30.0
_LOOK_EVERY_S: Final = 2.0
_TOOK_S: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

Listener = Callable[[str], None]


class ToolService:
    """The tools that keys may use; see ``api.services.tools.Tools``."""

    def __init__(
        self,
        database: Database,
        registry: ToolRegistry,
        usage: UsageStore,
        client: HttpToolClient,
        builtin: Mapping[str, Builtin],
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
        self._watch: asyncio.Task[None] | None = None
        self._look = asyncio.Event()
        self._looking = asyncio.Event()
        registry.changed = self._look.set

    async def list(self, principal: Principal) -> Sequence[Tool]:
        """The tools that a key may use now, by name: enabled, and allowed by the key's scopes."""
        limits = tools_of(principal.scopes)
        return [
            registered.tool
            for registered in await self._registry.list(principal.account_sid)
            if registered.tool.is_enabled and (limits is None or registered.tool.name in limits)
        ]

    async def execute(self, principal: Principal, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Use a tool once; see ``api.services.tools.Tools``."""
        limits = tools_of(principal.scopes)
        if limits is not None and name not in limits:
            raise NotFound(f"There is no tool {name[:64]} that this key may use.")
        found = await self._registry.get(principal.account_sid, name)
        if not found.tool.is_enabled:
            raise Conflict(f"The tool {name} is disabled; have it enabled first.")
        errors = checked_schema(found.tool.input_schema, "input_schema").errors(arguments, "arguments")
        if errors:
            raise ValidationFailed(errors)
        with self._place(principal.account_sid):
            return await self._counted(principal, found, arguments)

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with each account whose tools have changed; return a function that stops this."""
        self._listeners.append(listener)
        if self._watch is None:
            self._watch = asyncio.create_task(self._keep_looking(), name="tool-changes")

        def end() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return end

    async def watching(self) -> None:
        """Wait until every later change will be reported to the listeners."""
        await self._looking.wait()

    async def close(self) -> None:
        """Wait for the end of running built-in tools, and close all connections."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})
            self._watch = None
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._client.close()

    async def _counted(
        self, principal: Principal, found: RegisteredTool, arguments: Mapping[str, Any]
    ) -> ToolResult:
        clock, name = asyncio.get_running_loop().time, found.tool.name
        began, outcome = clock(), "failed"
        try:
            if found.http is not None:
                content = await self._client.ask(found.http, arguments)
            else:
                work = self._builtin[name](principal.account_sid, arguments)
                content = await self._to_its_end(name, work)
            outcome = "ok"
        except ToolTimedOut:
            outcome = "timed_out"
            raise
        finally:
            took_s = clock() - began
            self.uses["http" if found.http is not None else "builtin", outcome] += 1
            self.took_s.observe(took_s)
            duration_ms = round(took_s * 1000)
            self._usage.count(principal, name, failed=outcome != "ok", duration_ms=duration_ms)
        return ToolResult(content, duration_ms)

    async def _to_its_end(self, name: str, work: Coroutine[Any, Any, Any]) -> Any:
        """Run to the end work that must not be interrupted, even if no caller waits for it any more."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        try:
            async with asyncio.timeout(_BUILTIN_TIMEOUT_S):
                return await asyncio.shield(task)
        except TimeoutError:
            message = f"The tool {name} did not answer within {_BUILTIN_TIMEOUT_S:.0f} s, and goes on."
            raise ToolTimedOut(f"{message} Look what it did before a repeat.") from None

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # A caller that still waits gets it; there may be none.

    @contextlib.contextmanager
    def _place(self, account_sid: str) -> Iterator[None]:
        """
        Count one use while it lasts.

        Raises:
            RateLimited: The account, or all accounts together, use the maximum number of tools.
        """
        if self._in_use[account_sid] >= MAX_AT_ONCE or self._in_use.total() >= _MAX_AT_ONCE_IN_ALL:
            message = f"The account has {MAX_AT_ONCE} tools at work, or the server as many as it can."
            raise RateLimited(f"{message} Wait for Retry-After.", retry_after_s=1.0)
        self._in_use[account_sid] += 1
        try:
            yield
        finally:
            self._in_use[account_sid] -= 1
            if not self._in_use[account_sid]:
                del self._in_use[account_sid]

    async def _keep_looking(self) -> None:
        """Report changes to the listeners: local ones at once, those of other processes within seconds."""
        seen: int | None = None
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S if seen is not None else 0):
                    await self._look.wait()
            self._look.clear()
            try:
                if seen is None:
                    seen = await self._database.look_up(tools.last_change)
                    self._looking.set()
                    continue
                changes = await self._database.look_up(partial(tools.changed_since, seen=seen))
            except DomainError as error:
                log.warning("changes of tools could not be looked for now, trying again: %s", error)
                await asyncio.sleep(_LOOK_EVERY_S)
                continue
            seen = max((seen, *changes.values()))
            for account_sid in changes:
                for listener in list(self._listeners):
                    listener(account_sid)
