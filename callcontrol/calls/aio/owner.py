"""The task that owns a call, as those see it who perform its effects."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from callcontrol.calls.aio.log import CallLog
from callcontrol.calls.events import Event, Timer


class Owner(Protocol):
    """The task that owns the call."""

    log: CallLog

    def post(self, event: Event) -> None:
        """Put an event in the call's queue."""

    def follow(self, event: Event) -> None:
        """Have an event handled before anything else: the outcome of the effect being performed."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run what takes time beside the call."""

    def arm(self, timer: Timer, delay_s: float) -> None:
        """Start a timer."""

    def disarm(self, timer: Timer) -> None:
        """Stop a timer."""

    def closed(self) -> None:
        """Take note that the record has its end."""

    def now(self) -> float:
        """Monotonic seconds."""
