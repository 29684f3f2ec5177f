"""Tools, as the routes and the Model Context Protocol server use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from callcontrol.models import Principal
from callcontrol.tools.models import Tool, ToolResult

__all__ = ["Tools"]


class Tools(Protocol):
    """Tools of an account; see ``callcontrol.aio.tools.service.ToolService``."""

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
