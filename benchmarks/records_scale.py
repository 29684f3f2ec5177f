"""
Time to list calls among many: `python -m benchmarks.records_scale [--calls 1000000]`.

Fills a database with calls of one account (half a year of them, 20 caller-IDs, 200,000 callees), then reads
what GET /v1/calls reads: pages at the beginning, in the middle and at the end, every filter, and by cursor.
`first` is a list that was not asked for before, which is counted; `again` the same list a moment later. Each
is the best of three, in milliseconds, from the question to the records. Needs about 1.5 GB of disk for each
million on each database; PostgreSQL is started in a folder of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import random
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # the driver comes without types
import sqlalchemy as sa

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.records.store import calls as call_rows
from callcontrol.calls.records.store import lists as call_lists
from callcontrol.database.aio.pages import Pager
from callcontrol.database.tables.calls import calls
from callcontrol.models import (
    CallFilter,
    CallRecord,
    CallStatus,
    DirectionQuality,
    LegQuality,
    Page,
    Position,
    Quality,
)
from tests.support.postgres import running_postgres
from tests.support.secrets import SECRETS

_BATCH = 50_000
_SPAN = timedelta(days=180)
_STATUSES = ["completed", "no-answer", "busy", "failed", "canceled"]
_WEIGHTS = [70, 15, 8, 5, 2]
_COLUMNS = [column.name for column in calls.c]
_CALLER, _CALLEE = "+918047491805", "+919000000005"
_QUALITY = Quality(
    4.3,
    1.5,
    0.1,
    "PCMU",
    legs=[LegQuality("a", "PCMU", False, 1.2, DirectionQuality(4.3, 1.5, 0.1), DirectionQuality())],
)


def rows(account_sid: str, count: int, ends: datetime) -> Iterator[tuple[Any, ...]]:
    """Rows of calls that have ended, oldest first, the last of them just now."""
    chance = random.Random(1)
    record = CallRecord("", account_sid, "outbound", "", "", ends, CallStatus.COMPLETED)
    record.carrier_sid = record.gateway_sid = record.phone_number_id = account_sid
    record.duration_sec, record.bill_duration_sec, record.price_paise = 55, 60, 60
    record.hangup_cause, record.hangup_cause_code, record.hangup_source = "NORMAL_CLEARING", 16, "callee"
    record.sip_status, record.sip_reason, record.node = 200, "OK", "local"
    record.quality = _QUALITY
    row = call_rows.row_of(record)
    for number in range(count):
        at = ends - _SPAN * ((count - number) / count)
        micros = int(at.timestamp() * 1_000_000)
        row["call_sid"] = _sid(at, chance)
        row["direction"] = "inbound" if chance.random() < 0.3 else "outbound"
        row["from_number"] = f"+9180474918{chance.randrange(20):02d}"
        row["to_number"] = f"+91{9_000_000_000 + chance.randrange(200_000)}"
        row["status"] = row["outcome"] = chance.choices(_STATUSES, _WEIGHTS)[0]
        row["created_at"], row["ended_at"] = micros, micros + 60_000_000
        row["sip_call_id"] = f"{number:032x}@192.0.2.1"
        yield tuple([row[name] for name in _COLUMNS])


def _sid(at: datetime, chance: random.Random) -> str:
    text = f"{int(at.timestamp() * 1000):012x}7{chance.getrandbits(12):03x}8{chance.getrandbits(60):015x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:32]))


def fill_sqlite(path: Path, account_sid: str, count: int) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        marks = ",".join("?" * len(_COLUMNS))
        insert = f"INSERT INTO calls ({','.join(_COLUMNS)}) VALUES ({marks})"
        made = rows(account_sid, count, utc_now())
        while batch := list(itertools.islice(made, _BATCH)):
            connection.execute("BEGIN")
            connection.executemany(insert, batch)
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def fill_postgres(url: str, account_sid: str, count: int) -> None:
    parsed = sa.make_url(url)
    connection = await asyncpg.connect(
        user=parsed.username, database=parsed.database, host=parsed.query["host"]
    )
    try:
        await connection.copy_records_to_table(
            "calls", records=rows(account_sid, count, utc_now()), columns=_COLUMNS
        )
        # What its own housekeeping does within minutes.
        await connection.execute("VACUUM ANALYZE calls")
    finally:
        await connection.close()


def questions(count: int) -> Iterator[tuple[str, CallFilter, int | Position]]:
    """Queries, with the page or the cursor."""
    pages, now = count // 20, datetime.now(UTC)
    month = CallFilter(start=now - timedelta(days=60), end=now - timedelta(days=30))
    yield "all, page 1", CallFilter(), 1
    yield "all, page in the middle", CallFilter(), pages // 2
    yield "all, last page", CallFilter(), pages
    yield "all, by cursor in the middle", CallFilter(), _place(now - _SPAN / 2)
    for status in (CallStatus.COMPLETED, CallStatus.CANCELED, CallStatus.IN_PROGRESS):
        yield f"status={status.value}", CallFilter(status=status), 1
    yield "status=completed, page in the middle", CallFilter(status=CallStatus.COMPLETED), pages * 35 // 100
    yield "direction=outbound", CallFilter(direction="outbound"), 1
    yield "from=(one of 20)", CallFilter(from_=_CALLER), 1
    yield "to=(one of 200,000)", CallFilter(to=_CALLEE), 1
    yield "one month", month, 1
    yield "one month, page in the middle", month, pages // 12
    yield "one month, status=busy", replace(month, status=CallStatus.BUSY), 1
    yield "from and status=canceled", CallFilter(from_=_CALLER, status=CallStatus.CANCELED), 1
    yield "direction and status=canceled", CallFilter(direction="inbound", status=CallStatus.CANCELED), 1


def _place(at: datetime) -> Position:
    return Position(int(at.timestamp() * 1_000_000), "")


async def ask(
    storage: Storage, account_sid: str, query: CallFilter, where: int | Position
) -> Page[CallRecord]:
    if isinstance(where, Position):
        return await storage.calls.list(account_sid, query, 1, 20, after=where)
    return await storage.calls.list(account_sid, query, where, 20)


async def measure(storage: Storage, account_sid: str, count: int) -> None:
    print(f"{'':<40} {'total':>9} {'first':>9} {'again':>9}   (ms)")
    for name, query, where in questions(count):
        first: list[float] = []
        again: list[float] = []
        for _ in range(3):
            storage.calls._pager = Pager(call_lists.LISTING)
            for times in (first, again):
                started = time.perf_counter()
                page = await ask(storage, account_sid, query, where)
                times.append(1e3 * (time.perf_counter() - started))
        print(f"{name:<40} {page.total:>9,} {min(first):>9.1f} {min(again):>9.1f}", flush=True)


@contextlib.asynccontextmanager
async def filled(kind: str, count: int) -> AsyncIterator[tuple[Storage, str]]:
    """A database of a kind with so many calls."""
    with contextlib.ExitStack() as stack:
        if kind == "sqlite":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-scale-"))
            url = f"sqlite+aiosqlite:///{folder}/trunkline.db"
        else:
            url = await stack.enter_context(running_postgres()).url()
        storage = await Storage.open(url, deliver=False, secrets=SECRETS)
        try:
            account, _ = await storage.accounts.create("Benchmark")
            started = time.perf_counter()
            if kind == "sqlite":
                await asyncio.to_thread(
                    fill_sqlite, Path(folder) / "trunkline.db", account.account_sid, count
                )
            else:
                await fill_postgres(url, account.account_sid, count)
            print(
                f"\n{kind}: {count:,} calls of one account, filled in {time.perf_counter() - started:.0f} s"
            )
            yield storage, account.account_sid
        finally:
            await storage.close()


async def run(kinds: list[str], count: int) -> None:
    for kind in kinds:
        async with filled(kind, count) as (storage, account_sid):
            await measure(storage, account_sid, count)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--on", default="sqlite,postgres", help="databases")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.on.split(","), arguments.calls))


if __name__ == "__main__":
    main()
