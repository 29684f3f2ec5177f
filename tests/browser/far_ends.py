"""Far ends of calls on a loop of their own, as tests of a browser block: voice agents and telephones."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, TypeVar

from fixtures.agent import DemoAgent
from tests.acceptance.clients.phone import Phone
from tests.support.server_process import ServerProcess

__all__ = ["served", "telephone"]

T = TypeVar("T")


class _Loop:
    """A loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def close(self) -> None:
        """End the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def served(agent: DemoAgent) -> Iterator[DemoAgent]:
    """Serve streams with the agent until the block ends."""
    loop = _Loop()
    try:
        loop.run(agent.start())
        try:
            yield agent
        finally:
            loop.run(agent.stop())
    finally:
        loop.close()


@contextmanager
def telephone(server: ServerProcess) -> Iterator[Phone]:
    """A gateway with telephones, which answers OPTIONS and grants registrations."""
    loop, phone = _Loop(), Phone(("127.0.0.1", server.sip_port))
    try:
        loop.run(phone.__aenter__())
        yield phone
        loop.run(phone.__aexit__(None, None, None))
    finally:
        loop.close()
