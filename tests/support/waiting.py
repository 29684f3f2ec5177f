"""Waiting until something holds, as long as the slowest machine may take."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Final

from tests.support.virtual_time import VirtualTimeLoop

__all__ = ["PATIENCE_S", "holds_for", "look_again", "time_passes", "until"]

PATIENCE_S: Final = 40.0 * float(os.environ.get("TRUNKLINE_TEST_PATIENCE", "1"))


async def until(condition: Callable[[], object | Awaitable[object]]) -> None:
    """Ask again and again, of a value at hand or of something that has to be awaited, until it is true."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = condition()
            if isinstance(found, Awaitable):
                found = await found
            if found:
                return
            await asyncio.sleep(0.01)


async def look_again() -> None:
    """Pause between two looks at a condition; so long that an API that is asked for it does not refuse."""
    await asyncio.sleep(0.05)


async def holds_for(duration_s: float, condition: Callable[[], object]) -> None:
    """Look on while something holds, as far as that can be told: for what must not happen by itself."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + duration_s
    while loop.time() < end_s:
        assert condition()
        await look_again()


async def time_passes(duration_s: float) -> None:
    """
    Advance the virtual clock by exactly that much, without waiting.

    On the system's clock a test waits for a condition instead (`until`): the loop has to be a virtual one.
    """
    assert isinstance(asyncio.get_running_loop(), VirtualTimeLoop), "wait for a condition in real time"
    await asyncio.sleep(duration_s)
