"""
Cost of committing a call, on SQLite and PostgreSQL: `python -m benchmarks.commit_cost [--rates 50,200]`.

Each call is inserted with a reserve, changes its status three times, ends and is settled, over the services
that the server runs. `server` is the CPU of this process for that, above the same tasks without a database;
`database` is what the processes of PostgreSQL used; `insert` the time until a new call was durable. The
tables are filled with `--calls` calls first, so that the indexes have their depth.

`--indexes` says what each index of the lists adds instead, on SQLite: calls are written one by one in
transactions of their own, with all indexes and without each of them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import time
from functools import partial
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from benchmarks.records_scale import filled
from benchmarks.store_writes import Run
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.records.store import calls
from callcontrol.database.tables.calls import calls as table
from callcontrol.models import CallRecord, CallStatus
from callcontrol.wallet.store import reserves

_TICKS = os.sysconf("SC_CLK_TCK")


def postgres_cpu_s() -> float:
    """CPU time of this benchmark's PostgreSQL; its parent process counts the processes that ended."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            head, fields = (process / "stat").read_text().rsplit(") ", 1)
            values = [int(value) for value in fields.split()[1:15]]
            if head.endswith("(postgres"):
                parents[int(process.name)] = values[0]
                used[int(process.name)] = sum(values[10:14]) / _TICKS
    ours = {pid for pid, parent in parents.items() if parent == os.getpid()}
    return sum(spent for pid, spent in used.items() if pid in ours or parents[pid] in ours)


async def paced(kind: str, rates: list[int], seconds: float, count: int) -> None:
    async with filled(kind, count) as (storage, _):
        account, _ = await storage.accounts.create("Benchmark", balance_paise=10**9)
        for rate in rates:
            run = Run(storage, [account.account_sid], rate, seconds)
            idle_s = await run.drive(run.nothing)
            before = postgres_cpu_s()
            used_s = await run.drive(run.call) - idle_s
            database_s = postgres_cpu_s() - before
            inserts = sorted(run.inserts_s)
            p50, p99 = (1e3 * inserts[int(len(inserts) * share)] for share in (0.5, 0.99))
            server, database = (1e6 * spent / run.calls for spent in (used_s, database_s))
            print(
                f"{kind:<9} {rate:>7} {server:>10.0f} {database:>10.0f} {p50:>12.2f} {p99:>9.2f}", flush=True
            )


def one_call(connection: Connection, account_sid: str, step: int, record: CallRecord) -> None:
    """One of the five transactions of a call."""
    if step == 0:
        reserves.reserve(connection, account_sid, record.call_sid, 300, record.created_at)
        calls.insert(connection, [calls.row_of(record)])
        return
    record.status = list(CallStatus)[step]
    if step == 4:
        record.ended_at, record.duration_sec = utc_now(), 60
        reserves.settle(connection, record.call_sid, 60, record.ended_at)
    calls.update(connection, [calls.row_of(record)])


async def alone(storage: Storage, account_sid: str, count: int) -> float:
    """Microseconds of CPU for each call whose transactions are shared with none."""
    started = time.process_time()
    for number in range(count):
        to = f"+91{9_000_000_000 + number * 7919 % 200_000}"
        record = CallRecord(new_id(), account_sid, "outbound", "+918047491805", to, utc_now())
        record.node = "local"
        for step in range(5):
            await storage.writer.commit(partial(one_call, account_sid=account_sid, step=step, record=record))
    return 1e6 * (time.process_time() - started) / count


async def indexes(count: int) -> None:
    names = sorted(str(index.name) for index in table.indexes if str(index.name).startswith("ix_calls_list"))
    async with filled("sqlite", count) as (storage, _):
        account, _ = await storage.accounts.create("Benchmark", balance_paise=10**9)
        definitions = {
            name: str(sa.schema.CreateIndex(index).compile(dialect=sa.create_engine("sqlite://").dialect))
            for index in table.indexes
            if (name := str(index.name)) in names
        }
        for name in ("", *names):
            if name:
                await storage.writer.commit(partial(_execute, text=f"DROP INDEX {name}"))
            best = min([await alone(storage, account.account_sid, 500) for _ in range(5)])
            print(
                f"{'without ' + name if name else 'with all indexes':<40} {best:>8.0f} us a call", flush=True
            )
            if name:
                await storage.writer.commit(partial(_execute, text=definitions[name]))


def _execute(connection: Connection, text: str) -> None:
    connection.execute(sa.text(text))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rates", default="50,200", help="calls per second")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--calls", type=int, default=200_000, help="calls that are there already")
    parser.add_argument("--on", default="sqlite,postgres", help="databases")
    parser.add_argument("--indexes", action="store_true", help="what each index costs, instead")
    arguments = parser.parse_args()
    if arguments.indexes:
        asyncio.run(indexes(arguments.calls))
        return
    print("database  calls/s  server us  database us  insert p50  p99 (ms)")
    for kind in arguments.on.split(","):
        rates = [int(rate) for rate in arguments.rates.split(",")]
        asyncio.run(paced(kind, rates, arguments.seconds, arguments.calls))


if __name__ == "__main__":
    main()
