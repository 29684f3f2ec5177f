"""Tools, as the routes and the Model Context Protocol server use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from callcontrol.models import ApiKey, Principal
from callcontrol.tools.aio.registry import RegisteredTool
from callcontrol.tools.definitions import HttpTool
from callcontrol.tools.models import Tool, ToolResult
from callcontrol.tools.usage import Usage, UsageFilter, UsageKey

__all__ = ["AppKeys", "ToolRegistry", "ToolUsage", "Tools"]


class Tools(Protocol):
    """Tools of an account; see ``callcontrol.tools.aio.service.ToolService``."""

    async def list(self, principal: Principal) -> Sequence[Tool]:
        """Tools that a key may use now, by name: enabled ones, within the key's own list if it has one."""

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

    def on_change(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """
        Notify a listener of each account whose tools have changed, in any process.

        Returns a function that ends the notification.
        """


class ToolRegistry(Protocol):
    """Tools as their account manages them; see ``callcontrol.tools.aio.registry.ToolRegistry``."""

    async def list(self, account_sid: str) -> Sequence[RegisteredTool]:
        """All tools of the account, disabled ones too, by name."""

    async def get(self, account_sid: str, name: str) -> RegisteredTool:
        """One tool of the account."""

    async def register(self, account_sid: str, values: Mapping[str, Any]) -> HttpTool:
        """Define a tool; `values` are its attributes."""

    async def update(self, account_sid: str, name: str, values: Mapping[str, Any]) -> RegisteredTool:
        """Change a tool; `values` are the changed attributes."""

    async def set_enabled(self, account_sid: str, name: str, *, enabled: bool) -> RegisteredTool:
        """Enable or disable a tool."""

    async def delete(self, account_sid: str, name: str) -> None:
        """Delete a tool."""


class ToolUsage(Protocol):
    """Usage counts of tools; see ``callcontrol.tools.aio.usage.UsageStore``."""

    async def of_account(
        self, account_sid: str, wanted: UsageFilter
    ) -> tuple[Sequence[tuple[UsageKey, Usage]], bool]:
        """Usage of an account, newest day first; and true if more rows exist than returned."""


class AppKeys(Protocol):
    """App keys; see ``callcontrol.tools.aio.app_keys.AppKeys``."""

    async def list(self, account_sid: str) -> Sequence[ApiKey]:
        """Valid app keys of the account."""

    async def create(self, account_sid: str, name: str, tools: Sequence[str] | None) -> tuple[ApiKey, str]:
        """Create a key for all tools, or for some."""

    async def revoke(self, account_sid: str, key_id: str) -> ApiKey:
        """Revoke a key."""
