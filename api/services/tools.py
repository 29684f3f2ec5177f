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
        """The tools that a key may use now, by name: enabled, and among those that it is limited to."""

    async def execute(self, principal: Principal, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """
        Use a tool once.

        Cancelling it gives up an HTTP request of the account's own tools; what a built-in tool has begun is
        brought to its end.

        Raises:
            NotFound: The key may use no tool of this name.
            Conflict: The tool is disabled.
            ValidationFailed: With every wrong argument by its path (``arguments.to``).
            ToolFailed: What the tool asked did not answer, or not with what it promises.
            ToolTimedOut: It took longer than it may.
            RateLimited: The account uses as many tools at this moment as it may.
            DomainError: What a built-in tool is refused with, such as `InsufficientBalance`.
        """

    def on_change(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """
        Have a listener told the account whose tools have changed, in whichever process that was.

        Returns what ends this.
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
        """Change a tool; `values` are what is to change."""

    async def set_enabled(self, account_sid: str, name: str, *, enabled: bool) -> RegisteredTool:
        """Enable or disable a tool."""

    async def delete(self, account_sid: str, name: str) -> None:
        """Delete a tool."""


class ToolUsage(Protocol):
    """How often tools are used; see ``callcontrol.tools.aio.usage.UsageStore``."""

    async def of_account(
        self, account_sid: str, wanted: UsageFilter
    ) -> tuple[Sequence[tuple[UsageKey, Usage]], bool]:
        """The usage of an account, the newest day first; and whether there is more than is shown."""


class AppKeys(Protocol):
    """App keys; see ``callcontrol.tools.aio.app_keys.AppKeys``."""

    async def list(self, account_sid: str) -> Sequence[ApiKey]:
        """The app keys of the account that open anything still."""

    async def create(self, account_sid: str, name: str, tools: Sequence[str] | None) -> tuple[ApiKey, str]:
        """Make a key for all tools, or for some."""

    async def revoke(self, account_sid: str, key_id: str) -> ApiKey:
        """Revoke a key."""
