"""Interface of the task that owns a call, for the adapters that perform its effects."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from callcontrol.calls.aio.log import CallLog
from callcontrol.calls.events import Event, Timer


class Owner(Protocol):
    """The task that owns the call."""

    log: CallLog

    def post(self, event: Event) -> None:
        """Queue an event of the call."""

    def follow(self, event: Event) -> None:
        """Queue the outcome of the effect being performed; it is handled before any other event."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run slow work in a task beside the call."""

    def arm(self, timer: Timer, delay_s: float) -> None:
        """Start a timer."""

    def disarm(self, timer: Timer) -> None:
        """Stop a timer."""

    def closed(self) -> None:
        """Note that the record has its end."""

    def now(self) -> float:
        """Return monotonic seconds."""
