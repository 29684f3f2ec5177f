"""
Cost of writing a call: `python -m benchmarks.store_writes [--rates 100,300] [--busy 0,0.8]`.

Each call is inserted with a reserve, changes its status three times, ends, and is settled, on SQLite in a
temporary folder. Three ways to run the same transactions are compared: on the event loop, on a thread of
their own, and through aiosqlite, which sends every statement to a thread and back. `--busy` keeps the event
loop busy for that share of the time, in callbacks of 0.2 ms, as signalling does. Where the loop is otherwise
idle, the CPU of the same tasks without a database is subtracted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.aio.database import Operation, T
from callcontrol.database.aio.sqlite import Sqlite
from callcontrol.errors import ServiceUnavailable
from callcontrol.models import CallRecord, CallStatus
from callcontrol.secrets.aio import SecretBox, new_key

_SLICE_S = 0.0002
_PERIOD_S = 0.010
_STEP_S = 0.15
PRICE_PAISE = 60
"""Price of a call."""


class Threaded(Sqlite):
    """Every transaction on a thread, in one go."""

    async def write(self, operation: Operation[T]) -> T:
        async with self._writing:
            loop = asyncio.get_running_loop()
            result = await loop.run_in_executor(self._thread, self._transact, operation)
        self._checkpoints.count()
        return result


class Aiosqlite(Sqlite):
    """Every statement on a thread, through the asyncio driver."""

    _async_engine: AsyncEngine | None = None
    _async_connection: AsyncConnection | None = None

    async def write(self, operation: Operation[T]) -> T:
        if self._async_connection is None:
            self._async_engine = create_async_engine(
                self._url.set(drivername="sqlite+aiosqlite"),
                execution_options=dict(self._engine.get_execution_options()),
            )
            self._async_connection = await self._async_engine.connect()
            for pragma in ("synchronous = NORMAL", "foreign_keys = ON", "wal_autocheckpoint = 0"):
                await self._async_connection.exec_driver_sql(f"PRAGMA {pragma}")
            await self._async_connection.commit()
        async with self._writing, self._async_connection.begin():
            result = await self._async_connection.run_sync(operation)
        self._checkpoints.count()
        return result

    async def close(self) -> None:
        if self._async_connection is not None and self._async_engine is not None:
            await self._async_connection.close()
            await self._async_engine.dispose()
        await super().close()


WAYS: dict[str, type[Sqlite]] = {"loop": Sqlite, "thread": Threaded, "aiosqlite": Aiosqlite}


class Run:
    """One way at one rate; calls beyond the limits of their account are refused if they are ``limited``."""

    def __init__(
        self,
        storage: Storage,
        account_sids: Sequence[str],
        rate: float,
        seconds: float,
        busy: float = 0.0,
        *,
        limited: bool = False,
    ) -> None:
        self.storage = storage
        self.account_sids = account_sids
        self.limited = limited
        self.rate = rate
        self.seconds = seconds
        self.calls = int(rate * seconds)
        self.busy = busy
        self.inserts_s: list[float] = []
        self.refused = 0

    async def call(self) -> None:
        account_sid = random.choice(self.account_sids)
        record = CallRecord(new_id(), account_sid, "outbound", "+911", "+912", utc_now())
        record.carrier_sid, record.phone_number_id, record.sip_call_id = new_id(), new_id(), new_id()
        started = time.perf_counter()
        try:
            await self.storage.calls.insert(record, reserve_paise=300, limited=self.limited)
        except ServiceUnavailable:
            self.refused += 1
            return
        self.inserts_s.append(time.perf_counter() - started)
        for status in (CallStatus.INITIATED, CallStatus.RINGING, CallStatus.IN_PROGRESS):
            record.status = status
            self.storage.calls.update(record)
            await asyncio.sleep(_STEP_S)
        record.status, record.ended_at = CallStatus.COMPLETED, utc_now()
        self.storage.calls.finish(record, charge_paise=PRICE_PAISE)

    async def nothing(self) -> None:
        for _ in range(3):
            await asyncio.sleep(_STEP_S)

    async def drive(self, one: Callable[[], Awaitable[None]]) -> float:
        """Start `calls` of them evenly and return the CPU seconds that took."""
        before, started = _cpu_s(), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(self.calls):
                group.create_task(_awaited(one()))
                await asyncio.sleep(max(0.0, started + (number + 1) / self.rate - time.perf_counter()))
        await self.storage.calls.flush()
        return _cpu_s() - before

    async def measure(self) -> str:
        idle_s = 0.0 if self.busy else await self.drive(self.nothing)
        burner = asyncio.create_task(_burn(self.busy)) if self.busy else None
        used_s = await self.drive(self.call)
        if burner is not None:
            burner.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await burner
        inserts = sorted(self.inserts_s)
        cpu = "-" if self.busy else f"{1e6 * (used_s - idle_s) / self.calls:.0f}"
        p50, p99 = (1e3 * inserts[int(len(inserts) * share)] for share in (0.5, 0.99))
        return f"{cpu:>9} {p50:>10.2f} {p99:>10.2f} {1e3 * inserts[-1]:>10.2f} {self.refused:>8}"


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def _burn(share: float) -> None:
    while True:
        end = time.perf_counter() + _PERIOD_S * share
        while time.perf_counter() < end:
            slice_end = time.perf_counter() + _SLICE_S
            while time.perf_counter() < slice_end:
                pass
            await asyncio.sleep(0)
        await asyncio.sleep(_PERIOD_S * (1 - share))


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def _run(way: str, rate: int, seconds: float, busy: float) -> str:
    with tempfile.TemporaryDirectory(prefix="trunkline-store-") as folder:
        secrets = SecretBox([new_key()])
        backend = WAYS[way](sa.make_url(f"sqlite:///{Path(folder) / 'calls.db'}"), secrets)
        await backend.migrate()
        storage = Storage(backend, secrets, StorageSettings())
        await storage.writer.start()
        await storage.directory.start()
        account, _ = await storage.accounts.create("Benchmark", balance_paise=10**9)
        run = Run(storage, [account.account_sid], rate, seconds, busy)
        try:
            result = await run.measure()
            assert await storage.wallet.balance(account.account_sid) == 10**9 - PRICE_PAISE * len(
                run.inserts_s
            )
        finally:
            await storage.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rates", default="100,300", help="calls per second")
    parser.add_argument("--busy", default="0,0.8", help="share of the time that the loop is busy otherwise")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--ways", default=",".join(WAYS))
    arguments = parser.parse_args()
    print("way        calls/s  busy  us/call  insert p50    p99 (ms)        max  refused")
    for busy in arguments.busy.split(","):
        for rate in arguments.rates.split(","):
            for way in arguments.ways.split(","):
                result = asyncio.run(_run(way, int(rate), arguments.seconds, float(busy)))
                print(f"{way:<10} {rate:>7} {busy:>5}{result}", flush=True)


if __name__ == "__main__":
    main()
