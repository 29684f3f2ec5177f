"""
Cost and delay of webhooks: `python -m benchmarks.webhooks [throughput] [delay] [--json FILE]`.

`throughput`: events of as many calls are published as fast as they are delivered, to receivers that answer at
once; deliveries a second of one core, and CPU per delivery, all of it counted: publishing, leasing, signing,
sending, noting the outcome.

`delay`: calls go through their states at a fixed rate, with their events to ten destinations of which
`--dead` take connections and never answer, and `--slow` answer after `--slow-s` seconds; from the moment a
call's owner hands over a transition to the moment the receiver has read its event, on one clock, for the
healthy destinations. Afterwards every event has to be delivered or pending, and none may have come before one
of its call that was published earlier.

The server's part runs on the first core, the receivers on the last. The database is SQLite, in a temporary
folder.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from benchmarks.machine import SUT_PREFIX, TOOL_PREFIX, describe, sample
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.tables import webhooks
from callcontrol.models import CallRecord, CallStatus, WebhookEvent
from callcontrol.webhooks.store import deliveries

_PUBLISHED_AT_ONCE = 200
_AHEAD = 2000
# Of an event: its id, its call, whether the receiver is a slow one, when it was sent, when it had been read.
_Got = tuple[str, str, bool, float, float]
_STATES = (CallStatus.RINGING, CallStatus.IN_PROGRESS, CallStatus.COMPLETED)


class _Receiver(asyncio.Protocol):
    """As little of an HTTP server as takes a webhook and answers it."""

    def __init__(self, got: list[_Got], *, dead: bool, slow_s: float) -> None:
        self._got = got
        self._dead = dead
        self._slow_s = slow_s
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._dead:
            return
        self._pending += data
        while True:
            head, found, rest = self._pending.partition(b"\r\n\r\n")
            if not found:
                return
            _, _, length = head.lower().partition(b"content-length: ")
            size = int(length.split(b"\r\n", 1)[0])
            if len(rest) < size:
                return
            body = json.loads(rest[:size])
            call_sid = body["data"]["call_sid"]
            self._got.append(
                (body["event_id"], call_sid, self._slow_s > 0, body["sent_at"], time.monotonic())
            )
            self._pending = rest[size:]
            if self._slow_s:
                asyncio.get_running_loop().call_later(self._slow_s, self._answer)
            else:
                self._answer()

    def _answer(self) -> None:
        self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def _receive(count: int, dead: int, slow: int, slow_s: float) -> None:
    """Listen on as many ports and say which; tell what came when the input ends."""
    got: list[_Got] = []
    loop = asyncio.get_running_loop()

    def receiver(number: int) -> _Receiver:
        return _Receiver(got, dead=number < dead, slow_s=slow_s if dead <= number < dead + slow else 0.0)

    servers = [await loop.create_server(partial(receiver, number), "127.0.0.1", 0) for number in range(count)]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    print(json.dumps(got), flush=True)


@contextlib.contextmanager
def _receivers(count: int, dead: int, slow: int, slow_s: float) -> Any:
    which = f"{count},{dead},{slow},{slow_s}"
    command = [*TOOL_PREFIX, sys.executable, "-m", "benchmarks.webhooks", "--receive", which]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    ports = json.loads(process.stdout.readline())

    def received() -> list[_Got]:
        found, _ = process.communicate("")
        return [tuple(item) for item in json.loads(found)]

    try:
        yield [f"http://127.0.0.1:{port}/hook" for port in ports], received
    finally:
        process.kill()
        process.wait()


def _event(account_sid: str, call_sid: str, url: str, status: str = "ringing") -> WebhookEvent:
    """An event of the size that a call's has."""
    event_id = new_id()
    body = {
        "event": f"call.{status}",
        "event_id": event_id,
        "sent_at": time.monotonic(),
        "data": {"call_sid": call_sid, "padding": "x" * 700},
    }
    return WebhookEvent(
        event_id, account_sid, f"call.{status}", url, json.dumps(body).encode(), utc_now(), call_sid
    )


async def _throughput(
    storage: Storage, account_sid: str, urls: Sequence[str], seconds: float
) -> dict[str, Any]:
    outbox, writer = storage.outbox, storage.writer

    async def publish(until: float) -> None:
        published = outbox.stats.delivered
        while time.monotonic() < until:
            if published - outbox.stats.delivered > _AHEAD:
                await asyncio.sleep(0.005)
                continue
            events = [
                _event(account_sid, new_id(), urls[number % len(urls)])
                for number in range(_PUBLISHED_AT_ONCE)
            ]
            rows = [deliveries.row_of(event) for event in events]
            await writer.commit(partial(deliveries.insert, rows=rows))
            outbox.committed(events)
            published += len(events)

    await publish(time.monotonic() + 2.0)
    before, began = sample(os.getpid()), outbox.stats.delivered
    await publish(time.monotonic() + seconds)
    done, usage = outbox.stats.delivered - began, sample(os.getpid()).since(before)
    return {
        "deliveries": done,
        "per_s": round(done / usage["wall_s"], 1),
        "cpu_us": round(1e6 * usage["cpu_s"] / max(done, 1), 1),
        "per_s_per_core": round(done / max(usage["cpu_s"], 1e-9), 1),
        "under_way_or_failed": outbox.stats.attempts - outbox.stats.delivered,
        **usage,
    }


async def _delay(
    storage: Storage, account_sid: str, urls: Sequence[str], healthy: Sequence[str], args: argparse.Namespace
) -> dict[str, Any]:
    """Publish; who lives is told from what arrived."""
    rate, seconds = args.rate, args.seconds
    published: Counter[str] = Counter()
    late_s = 0.0

    async def call(url: str) -> None:
        record = CallRecord(new_id(), account_sid, "outbound", "+911", "+912", utc_now())
        event = _event(account_sid, record.call_sid, url, "initiated")
        published[url] += 1
        await storage.calls.insert(record, events=[event])
        for status in _STATES:
            await asyncio.sleep(0.5)
            record.status = status
            event = _event(account_sid, record.call_sid, url, status.value)
            published[url] += 1
            if status.ended:
                record.ended_at = utc_now()
                storage.calls.finish(record, events=[event])
            else:
                storage.calls.update(record, events=[event])

    before, began = sample(os.getpid()), time.monotonic()
    calls_per_s = rate / (1 + len(_STATES))
    async with asyncio.TaskGroup() as group:
        for number in range(round(calls_per_s * seconds)):
            due = began + number / calls_per_s
            await asyncio.sleep(max(due - time.monotonic(), 0.0))
            late_s = max(late_s, time.monotonic() - due)
            group.create_task(call(urls[number % len(urls)]))
    usage = sample(os.getpid()).since(before)
    await _until_delivered(storage, healthy)
    return {
        "published": sum(published.values()),
        "published_by_url": dict(published),
        "tool_late_ms_max": round(1000 * late_s, 1),
        "skipped": storage.outbox.stats.skipped,
        **usage,
    }


async def _until_delivered(storage: Storage, urls: Sequence[str]) -> None:
    """Wait, for a minute at most, until those that live have got all, however busy the machine is."""
    rows = sa.select(sa.func.count()).where(webhooks.deliveries.c.status == "pending")
    waiting = rows.where(webhooks.deliveries.c.url.in_(urls))
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        await asyncio.sleep(0.5)
        if not await storage.database.read(lambda connection: connection.scalar(waiting)):
            return


async def _serve(args: argparse.Namespace) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory() as folder,
        _receivers(args.destinations, args.dead, args.slow, args.slow_s) as (urls, received),
    ):
        url = f"sqlite+aiosqlite:///{Path(folder) / 'webhooks.db'}"
        storage = await Storage.open(url, StorageSettings(allow_private_destinations=True))
        try:
            account, _ = await storage.accounts.create("Bench", balance_paise=10**9, kyc=True)
            gc.freeze()
            if args.part == "throughput":
                return await _throughput(storage, account.account_sid, urls, args.seconds)
            healthy = urls[args.dead + args.slow :]
            found = await _delay(storage, account.account_sid, urls, healthy, args)
            rows = await storage.database.read(deliveries.counts)
            return found | {"rows": rows} | _delays(found.pop("published_by_url"), healthy, received())
        finally:
            await storage.close()


def _delays(published: dict[str, int], healthy: Sequence[str], received: Sequence[_Got]) -> dict[str, Any]:
    first: dict[str, _Got] = {}
    for got in received:
        first.setdefault(got[0], got)
    in_time = [got for got in first.values() if not got[2]]
    delays = sorted(1000 * (at - sent_at) for *_, sent_at, at in in_time)
    cuts = statistics.quantiles(delays, n=1000)
    last: dict[str, float] = {}
    out_of_order = 0
    for _, call_sid, _, sent_at, _ in first.values():
        out_of_order += sent_at < last.get(call_sid, 0.0)
        last[call_sid] = sent_at
    return {
        "healthy": len(healthy),
        "to_healthy": sum(published.get(url, 0) for url in healthy),
        "arrived": len(in_time),
        "arrived_at_slow": len(first) - len(in_time),
        "doubles": len(received) - len(first),
        "out_of_order": out_of_order,
        "p50_ms": round(cuts[499], 1),
        "p90_ms": round(cuts[899], 1),
        "p99_ms": round(cuts[989], 1),
        "max_ms": round(delays[-1], 1),
    }


def _run(args: argparse.Namespace, part: str) -> dict[str, Any]:
    """Measure in a process of its own, on a core of its own."""
    values = {
        "seconds": args.seconds,
        "rate": args.rate,
        "destinations": args.destinations,
        "dead": args.dead,
        "slow": args.slow,
        "slow-s": args.slow_s,
    }
    if part == "throughput":
        values |= {"dead": 0, "slow": 0}
    command = [*SUT_PREFIX, sys.executable, "-m", "benchmarks.webhooks", "--part", part]
    command += [str(item) for name, value in values.items() for item in (f"--{name}", value)]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, text=True).splitlines()[-1])
    return found


def main() -> None:
    """Run what is asked for and print it."""
    parser = argparse.ArgumentParser(prog="benchmarks.webhooks")
    parser.add_argument("what", nargs="*", default=["throughput", "delay"], help="throughput, delay")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=50.0, help="events a second")
    parser.add_argument("--destinations", type=int, default=10)
    parser.add_argument("--dead", type=int, default=1, help="of the destinations")
    parser.add_argument("--slow", type=int, default=0, help="of the destinations")
    parser.add_argument("--slow-s", type=float, default=2.0, help="how long these take to answer")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--receive", help=argparse.SUPPRESS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.receive:
        count, dead, slow, slow_s = args.receive.split(",")
        _on_a_loop(_receive(int(count), int(dead), int(slow), float(slow_s)))
    elif args.part:
        print(json.dumps(_on_a_loop(_serve(args))))
    else:
        results = {"machine": describe(), **{part: _run(args, part) for part in args.what}}
        print(json.dumps(results, indent=2))
        if args.json:
            args.json.write_text(json.dumps(results, indent=2))


def _on_a_loop(coroutine: Any) -> Any:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(coroutine)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


if __name__ == "__main__":
    main()
