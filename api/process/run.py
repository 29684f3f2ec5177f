"""Run of a server in the foreground: its signals, its drain, its end."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from api.process.allocator import steady_allocator
from api.process.collector import calm_collector, collector_paused
from api.process.config import Settings
from api.process.failures import StartFailed
from api.process.first_run import console_link, greeting
from api.process.logs import print_line
from api.process.server import Server
from api.process.values import HostPort

__all__ = ["run_loop", "serve"]

_log = logging.getLogger("api.process.run")

ResultT = TypeVar("ResultT")


async def serve(settings: Settings, command: str = "trunkline") -> None:
    """
    Run a server in the foreground until a signal, a successor or an operator's command drains it.

    A further signal ends it at once; after a command the first one only repeats that it is to drain.

    Args:
        settings: Settings of the server.
        command: Shell command for `trunkline`, with which the printed commands begin.
    """
    steady_allocator()
    for line in settings.name_warnings():
        _log.warning("%s", line)
    signals = _Signals()
    server = Server(settings)
    with collector_paused():
        await server.start()
    try:
        calm_collector()
        link = await console_link(server.storage, server.demo, server.url) if server.console else None
        print_line(greeting(server.demo, server.url, command, console=link))
        _log.info("ready: API %s, SIP %s", server.url, ", ".join(_sip_addresses(server)))
        taken, requested = server.hot_restart.taken, server.storage.membership.drain_requested
        await _either(signals.first, taken, requested, server.fenced)
        if server.fenced.is_set():
            raise StartFailed("another node has taken over the calls of this one; start it again")
        drain = asyncio.create_task(server.drain())
        again = signals.first if taken.is_set() and not signals.first.is_set() else signals.second
        impatience = asyncio.create_task(_either(again, server.fenced))
        await asyncio.wait({drain, impatience}, return_when=asyncio.FIRST_COMPLETED)
        impatience.cancel()
        if not drain.done():
            drain.cancel()
            await asyncio.wait({drain})
        elif drain.exception() is not None:
            _log.error("the drain failed", exc_info=drain.exception())
    finally:
        await server.stop()
        gc.unfreeze()
        _log.info("stopped")


async def _either(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


class _Signals:
    """Events of the first and the second SIGTERM or SIGINT."""

    def __init__(self) -> None:
        self.first, self.second = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._note)

    def _note(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


def run_loop(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine on a new event loop, of uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _sip_addresses(server: Server) -> list[str]:
    return [
        f"{listen.transport}:{HostPort(listen.host, listen.port)}"
        for listen in server.control.user_agent.addresses
    ]
