"""Waiting of clients until something is there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["PATIENCE_S", "appears"]

PATIENCE_S: Final = 20.0 * float(os.environ.get("TRUNKLINE_TEST_PATIENCE", "1"))
_LOOK_S: Final = 0.02

FoundT = TypeVar("FoundT")


async def appears(look: Callable[[], FoundT | None], wanted: str, timeout_s: float = PATIENCE_S) -> FoundT:
    """Look until something is found, and return it; `wanted` says what is missing when it is not."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + timeout_s
    while True:
        found = look()
        if found:
            return found
        assert loop.time() < end_s, f"{wanted} has not come within {timeout_s:.0f} s"
        await asyncio.sleep(_LOOK_S)
