"""
Cost of open pages of the console: `python -m benchmarks.console_feed [--pages N] [--calls N] [--seconds S]`.

It measures twice. First calls through a whole server, which SIPp places while others are up: how long their
set-up takes with the pages open and without, in turns, and what CPU time the server takes (`console_calls`).
Then the feed alone, at its worst:

Calls are up and change as calls of a minute do: each begins, rings, is answered, has four further events and
ends. The same changes are made twice: while no page is open, and while so many pages show all of them. The
difference of the CPU time of the server's process is the cost of the pages; beside it stands by how much its
loop was late, which is what calls would notice, and the CPU time of its longest step, which a busy machine
does not change. Pages are connections of another process, which read all that they are sent: changes, and the
levels of two legs of each call, all of which differ at each look. Neither the database nor SIP nor the media
engine takes part; that measures a leg's level with 0.02 % of a core.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import randrange
from selectors import DefaultSelector, SelectorKey
from typing import Any

import aiohttp
from aiohttp import web

from api.console.app import Console, ConsoleSettings
from api.http.app import create_app
from api.http.session import COOKIE
from api.process.metrics import Metrics
from benchmarks.console_calls import Load, measure
from benchmarks.sut import tools_missing
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.models import CallRecord, CallStatus
from media.types import StreamMeter
from tests.support.api_facts import ACCOUNT, KEY
from tests.support.api_stage import URL, ApiStage, ParkedMedia, api_stage
from tests.support.waiting import until

_CALL_S = 60.0
_CHANGES = (CallStatus.RINGING, *[CallStatus.IN_PROGRESS] * 5, CallStatus.COMPLETED)
_LOOK_S = 0.01


class _Steps(DefaultSelector):
    """A selector that measures what the loop does between two looks at its sockets."""

    def __init__(self) -> None:
        super().__init__()
        self.longest_s = 0.0
        self._began_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Wait for events; ends a step, and begins the next."""
        self.longest_s = max(self.longest_s, time.process_time() - self._began_s)
        found = super().select(timeout)
        self._began_s = time.process_time()
        return found


class _Media(ParkedMedia):
    """Two legs with other levels at each look."""

    def meters(self) -> dict[int, StreamMeter]:
        """Return what is measured."""
        return {
            leg: StreamMeter(randrange(60), randrange(60), randrange(9999), 0, randrange(9999), 0)
            for leg in (0, 1)
        }


@dataclass(frozen=True)
class _Cost:
    """CPU time of this process and of the longest step of its loop, and the delays of the loop."""

    cpu_s: float
    step_s: float
    late: Sequence[float]

    @property
    def late_p99_ms(self) -> float:
        """Delay that one of a hundred exceeds."""
        return round(sorted(self.late)[int(len(self.late) * 0.99)] * 1000, 2)

    @property
    def step_ms(self) -> float:
        """Longest step."""
        return round(self.step_s * 1000, 2)


async def _changes(stage: ApiStage, records: Sequence[CallRecord], seconds: float, steps: _Steps) -> _Cost:
    """Change calls for some seconds; return what that has cost."""
    store, calls = stage.storage.calls, len(records)
    every_s = _CALL_S / (calls * len(_CHANGES))
    late: list[float] = []
    await asyncio.sleep(0)
    steps.longest_s = 0.0
    began_s, cpu_s, number = time.monotonic(), time.process_time(), 0
    while (now_s := time.monotonic()) < began_s + seconds:
        while began_s + number * every_s <= now_s:
            record = records[number % calls]
            record.status = _CHANGES[(number // calls) % len(_CHANGES)]
            store.journal.note(record.call_sid, time.time(), "event", "call.event", {})
            if store.watcher is not None:
                store.watcher(record)
            number += 1
        before_s = time.monotonic()
        await asyncio.sleep(_LOOK_S)
        late.append(time.monotonic() - before_s - _LOOK_S)
    return _Cost(time.process_time() - cpu_s, steps.longest_s, late)


def _record(number: int) -> CallRecord:
    now = utc_now()
    to = f"+9198{number:08}"
    return CallRecord(new_id(), ACCOUNT, "outbound", "+918047000001", to, now, answered_at=now)


async def _measure(arguments: argparse.Namespace, steps: _Steps) -> dict[str, Any]:
    async with AsyncExitStack() as closing:
        folder = closing.enter_context(tempfile.TemporaryDirectory())
        stage = await closing.enter_async_context(api_stage(Path(folder)))
        app = create_app(
            stage.services, mcp=stage.mcp, lifecycle=stage.lifecycle, metrics=Metrics(), public_url=URL
        )
        console = Console(
            stage.services, stage.lifecycle, ConsoleSettings(public_url=URL, is_trusted=lambda _: True)
        )
        console.attach(app)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        closing.push_async_callback(runner.cleanup)
        closing.push_async_callback(console.close)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        token = await stage.storage.console_sessions.open(KEY)
        records = [_record(number) for number in range(arguments.calls)]
        for record in records:
            stage.park(record=record).media = _Media()
        await _changes(stage, records, 1.0, steps)
        alone = await _changes(stage, records, arguments.seconds, steps)
        reader = f"{port} {token} {arguments.pages}"
        pages = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.console_feed", "--read", reader),
            stdout=asyncio.subprocess.DEVNULL,
        )
        closing.push_async_callback(pages.wait)
        closing.callback(pages.kill)
        await until(lambda: console.feed.pages >= arguments.pages)
        await _changes(stage, records, 1.0, steps)
        opened = await _changes(stage, records, arguments.seconds, steps)
        return {
            "pages": console.feed.pages,
            "calls": arguments.calls,
            "changes_per_s": round(arguments.calls * len(_CHANGES) / _CALL_S, 1),
            "seconds": arguments.seconds,
            "core_without_pages": round(alone.cpu_s / arguments.seconds, 4),
            "core_with_pages": round(opened.cpu_s / arguments.seconds, 4),
            "core_of_pages": round((opened.cpu_s - alone.cpu_s) / arguments.seconds, 4),
            "late_p99_ms_without_pages": alone.late_p99_ms,
            "late_p99_ms_with_pages": opened.late_p99_ms,
            "longest_step_ms_without_pages": alone.step_ms,
            "longest_step_ms_with_pages": opened.step_ms,
        }


async def _read(port: int, token: str, pages: int) -> None:
    """Be so many pages, which read until they are ended; tell when each has got its first event."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    headers = {"Cookie": f"{COOKIE}={token}"}
    opened = 0
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:

        async def page() -> None:
            nonlocal opened
            async with session.get(f"http://127.0.0.1:{port}/console/events?calls=all&levels=1") as stream:
                assert stream.status == 200, await stream.text()
                await stream.content.readline()
                opened += 1
                if opened == pages:
                    print("ready", flush=True)
                async for _ in stream.content.iter_any():
                    pass
            raise AssertionError("the server has ended a page")

        await asyncio.gather(*(page() for _ in range(pages)))


def main() -> None:
    """Measure, and print the result as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=10.0, help="calls per second whose set-up is timed")
    parser.add_argument("--rounds", type=int, default=3, help="turns with the pages, and without")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        port, token, pages = arguments.read.split()
        asyncio.run(_read(int(port), token, int(pages)))
        return
    if missing := tools_missing():
        parser.error(f"this needs {', '.join(missing)}")
    load = Load(arguments.pages, arguments.calls, arguments.rate, arguments.seconds, max(1, arguments.rounds))
    calls = measure(load)
    steps = _Steps()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(steps)) as runner:
        print(json.dumps({"calls": calls, "feed": runner.run(_measure(arguments, steps))}, indent=2))


if __name__ == "__main__":
    main()
