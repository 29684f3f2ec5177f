"""Helpers for services that run a background task from their start until they are closed."""

import asyncio
import contextlib


async def ended(task: asyncio.Task[None] | None) -> None:
    """Stop a task, if there is one, and wait until it has stopped."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def woken(wake: asyncio.Event, at_most_s: float) -> None:
    """Wait until ``wake`` is set, or ``at_most_s`` seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(at_most_s):
            await wake.wait()
