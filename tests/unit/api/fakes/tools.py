"""Tools that answer what tests say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from callcontrol.errors import NotFound
from callcontrol.models import ApiKey, Principal
from callcontrol.tools.aio.registry import RegisteredTool
from callcontrol.tools.builtin import BUILTIN
from callcontrol.tools.definitions import HttpTool, changed_tool, new_tool
from callcontrol.tools.models import Tool, ToolResult
from callcontrol.tools.usage import Usage, UsageFilter, UsageKey
from tests.support.api_facts import ACCOUNT, MOMENT, NOWHERE


class FakeTools:
    """`result` is what every use answers, or raises."""

    def __init__(self) -> None:
        self.result: Any = {"call_sid": NOWHERE}
        self.used: list[tuple[str, Mapping[str, Any]]] = []

    async def list(self, principal: Principal) -> Sequence[Tool]:
        return list(BUILTIN.values())

    async def execute(self, principal: Principal, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        self.used.append((name, arguments))
        if isinstance(self.result, Exception):
            raise self.result
        return ToolResult(self.result, 12)

    def on_change(self, listener: Callable[[str], None]) -> Callable[[], None]:
        return lambda: None


class FakeToolRegistry:
    def __init__(self) -> None:
        self.defined: dict[str, HttpTool] = {}
        self.off: set[str] = set()

    async def list(self, account_sid: str) -> list[RegisteredTool]:
        return [await self.get(account_sid, name) for name in self.defined]

    async def get(self, account_sid: str, name: str) -> RegisteredTool:
        if name not in self.defined:
            raise NotFound("There is no such tool.")
        return RegisteredTool(
            self.defined[name].described(is_enabled=name not in self.off), self.defined[name]
        )

    async def register(self, account_sid: str, values: Mapping[str, Any]) -> HttpTool:
        made = new_tool(NOWHERE, ACCOUNT, values, secret="whsec_" + "A" * 44, now=MOMENT)
        self.defined[made.name] = made
        return made

    async def update(self, account_sid: str, name: str, values: Mapping[str, Any]) -> RegisteredTool:
        self.defined[name] = changed_tool(self.defined[name], values, MOMENT)
        return await self.get(account_sid, name)

    async def set_enabled(self, account_sid: str, name: str, *, enabled: bool) -> RegisteredTool:
        (self.off.discard if enabled else self.off.add)(name)
        return await self.get(account_sid, name)

    async def delete(self, account_sid: str, name: str) -> None:
        del self.defined[name]


class FakeToolUsage:
    def __init__(self) -> None:
        self.wanted: list[UsageFilter] = []
        self.rows = [(UsageKey(ACCOUNT, "2026-01-31", "place_call", NOWHERE), Usage(3, 1, 100, 90))]

    async def of_account(
        self, account_sid: str, wanted: UsageFilter
    ) -> tuple[list[tuple[UsageKey, Usage]], bool]:
        self.wanted.append(wanted)
        return self.rows, False


class FakeAppKeys:
    def __init__(self) -> None:
        self.keys: list[ApiKey] = []

    async def list(self, account_sid: str) -> list[ApiKey]:
        return self.keys

    async def create(self, account_sid: str, name: str, tools: Sequence[str] | None) -> tuple[ApiKey, str]:
        scopes = ("tools", *(f"tool:{tool}" for tool in tools or ()))
        self.keys.append(ApiKey(NOWHERE, account_sid, "tools", scopes, "vt_abcde", MOMENT, name=name))
        return self.keys[-1], "vt_" + "a" * 43

    async def revoke(self, account_sid: str, key_id: str) -> ApiKey:
        return self.keys[-1]
