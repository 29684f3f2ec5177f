"""Waiting until something holds, as long as the slowest machine may take."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Final

__all__ = ["PATIENCE_S", "until"]

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
