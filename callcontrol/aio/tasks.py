"""Helpers for services that run a background task from their start until they are closed."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from callcontrol.errors import DomainError


class Worker:
    """
    Background task that runs a step again and again, until it is closed.

    Args:
        name: Name of the work, for the task and the log.
        step: Does the work; returns the seconds until the next run.
        retry_s: Seconds until the next run after one that failed.
        log: Logger of failures.
        level: Level of failures that are expected, as while the database is down.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[float]],
        *,
        retry_s: float,
        log: logging.Logger,
        level: int = logging.WARNING,
    ) -> None:
        self._name = name
        self._step = step
        self._retry_s = retry_s
        self._log = log
        self._level = level
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start with a first run."""
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def close(self) -> None:
        """Stop, in the middle of a run too."""
        await ended(self._task)
        self._task = None

    def wake(self) -> None:
        """Run now, or again after the current run."""
        self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            wait_s = self._retry_s
            try:
                wait_s = await self._step()
            except DomainError as error:
                self._log.log(self._level, "%s failed, trying again: %s", self._name, error)
            except Exception:
                # A defect in one run must not keep all later ones from being made.
                self._log.exception("%s failed", self._name)
            await woken(self._wake, wait_s)


async def ended(task: asyncio.Task[None] | None) -> None:
    """Stop a task, if there is one, and wait until it has stopped."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def woken(wake: asyncio.Event, at_most_s: float | None) -> None:
    """Wait until ``wake`` is set, or ``at_most_s`` seconds; None for no limit."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(at_most_s):
            await wake.wait()
