"""A demo agent on an event loop of its own, for tests that are no coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from fixtures.agent import DemoAgent

__all__ = ["served"]


@contextmanager
def served(agent: DemoAgent) -> Iterator[DemoAgent]:
    """Serve streams with the agent until the block ends."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(agent.start(), loop).result(30)
        try:
            yield agent
        finally:
            asyncio.run_coroutine_threadsafe(agent.stop(), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
