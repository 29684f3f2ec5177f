"""
Time to list masking logs and statistics: `python -m benchmarks.masking_scale [--calls 1000000]`.

Fills a database with masked calls of one account (half a year of them; 20 parties who are in one of twenty
calls each, 200,000 who are in a few, a tenth of the calls inbound by 20,000 sessions), then reads what
GET /v1/masking/call-logs reads: pages at the beginning, in the middle and at the end, and every filter.
`first` is a list that was not asked for before, which is counted; `again` the same list a moment later.
Statistics are never remembered. Each is the best of three, in milliseconds, from the question to the records.

Then, on top of them, what a call costs that is written as calls are (its insert, four steps and its
end): a plain call beside a masked one, in microseconds of this process for each call, many calls at once.
Needs about 2 GB of disk for each million on each database; PostgreSQL is started in a folder of its own.
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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # the driver comes without types
import sqlalchemy as sa

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.records.store import calls as call_rows
from callcontrol.clock import timestamp
from callcontrol.database.aio.pages import Pager
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.masking import masked_calls
from callcontrol.masking.calls import PRODUCT, masked_details
from callcontrol.masking.logs import MaskedCallFilter
from callcontrol.masking.store import calls as masked_rows
from callcontrol.models import CallRecord, CallStatus
from tests.support.postgres import running_postgres
from tests.support.secrets import SECRETS

_BATCH = 50_000
_SPAN = timedelta(days=180)
_STATUSES = ["completed", "no-answer", "failed"]
_WEIGHTS = [60, 30, 10]
_TABLES = (calls, masked_calls)
_MASKED = "+918047491899"
_BUSY, _SELDOM, _SESSION = "+919700000005", "+919800000005", "session-5"
_AT_ONCE = 50

Row = dict[str, Any]


def rows(account_sid: str, count: int, ends: datetime) -> Iterator[tuple[Row, Row]]:
    """Rows of calls that have ended, oldest first: those of the records, and those that lists read."""
    chance = random.Random(1)
    record = _record(account_sid, ends, "+910000000000", "+910000000001")
    _end(record)
    call = call_rows.row_of(record)
    masked = masked_rows.row_of(call)
    for number in range(count):
        at = ends - _SPAN * ((count - number) / count)
        call["call_sid"] = masked["call_sid"] = _sid(at, chance)
        call["created_at"] = masked["created_at"] = int(at.timestamp() * 1_000_000)
        call["ended_at"] = call["created_at"] + 60_000_000
        inbound = chance.random() < 0.1
        masked["direction"] = "inbound" if inbound else "click_to_call"
        masked["session_id"] = f"session-{chance.randrange(20_000)}" if inbound else None
        parties = [
            f"+91{9_700_000_000 + chance.randrange(20)}",
            f"+91{9_800_000_000 + chance.randrange(200_000)}",
        ]
        masked["caller_number"], masked["target_number"] = parties[::-1] if inbound else parties
        masked["status"] = masked["outcome"] = call["status"] = chance.choices(_STATUSES, _WEIGHTS)[0]
        call["outcome"] = masked["outcome"]
        masked["connected"] = masked["outcome"] == "completed"
        masked["bill_duration_sec"] = 60 * chance.randrange(1, 9) if masked["connected"] else None
        masked["price_paise"] = call["price_paise"] = (masked["bill_duration_sec"] or 0) * 2
        yield call, masked


def _record(account_sid: str, at: datetime, caller: str, target: str) -> CallRecord:
    details = masked_details(
        direction="click_to_call", caller_number=caller, target_number=target, masked_number=_MASKED
    )
    return CallRecord(
        new_id(),
        account_sid,
        "outbound",
        _MASKED,
        caller,
        at,
        CallStatus.QUEUED,
        product=PRODUCT,
        details=details,
    )


def _end(record: CallRecord) -> None:
    record.status, record.ended_at = CallStatus.COMPLETED, record.created_at
    record.duration_sec, record.bill_duration_sec, record.price_paise = 55, 60, 60
    record.hangup_cause, record.hangup_cause_code, record.hangup_source = "NORMAL_CLEARING", 16, "callee"
    if record.details is not None:
        record.details = {
            **record.details,
            "status": "completed",
            "bridged_at": timestamp(record.created_at),
            "bill_duration_sec": 60,
        }


def _sid(at: datetime, chance: random.Random) -> str:
    text = f"{int(at.timestamp() * 1000):012x}7{chance.getrandbits(12):03x}8{chance.getrandbits(60):015x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:32]))


def _batches(account_sid: str, count: int) -> Iterator[tuple[list[Row], list[Row]]]:
    made = rows(account_sid, count, utc_now())
    # The generator changes its two rows in place.
    while batch := [(dict(call), dict(masked)) for call, masked in itertools.islice(made, _BATCH)]:
        yield [call for call, _ in batch], [masked for _, masked in batch]


def fill_sqlite(path: Path, account_sid: str, count: int) -> None:
    """Write the rows, with the indexes in place as they are for a server."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for both in _batches(account_sid, count):
            connection.execute("BEGIN")
            for table, some in zip(_TABLES, both, strict=True):
                names = [column.name for column in table.c]
                marks = ",".join("?" * len(names))
                insert = f"INSERT INTO {table.name} ({','.join(names)}) VALUES ({marks})"
                connection.executemany(insert, [[row[name] for name in names] for row in some])
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def fill_postgres(url: str, account_sid: str, count: int) -> None:
    """Write the rows, and do what PostgreSQL's own housekeeping does within minutes."""
    parsed = sa.make_url(url)
    connection = await asyncpg.connect(
        user=parsed.username, database=parsed.database, host=parsed.query["host"]
    )
    try:
        for both in _batches(account_sid, count):
            for table, some in zip(_TABLES, both, strict=True):
                names = [column.name for column in table.c]
                values = [tuple([row[name] for name in names]) for row in some]
                await connection.copy_records_to_table(table.name, records=values, columns=names)
        for table in _TABLES:
            await connection.execute(f"VACUUM ANALYZE {table.name}")
    finally:
        await connection.close()


def questions(count: int) -> Iterator[tuple[str, MaskedCallFilter, int]]:
    """Queries, with the page."""
    pages, now = count // 20, datetime.now(UTC)
    wanted = MaskedCallFilter
    month = wanted(start=now - timedelta(days=60), end=now - timedelta(days=30))
    yield "all, page 1", wanted(), 1
    yield "all, page in the middle", wanted(), pages // 2
    yield "all, last page", wanted(), pages
    yield "status=completed", wanted(status="completed"), 1
    yield "status=completed, page in the middle", wanted(status="completed"), pages * 30 // 100
    yield "status=failed", wanted(status="failed"), 1
    yield "status=in-progress", wanted(status="in-progress"), 1
    yield "direction=inbound", wanted(direction="inbound"), 1
    yield "party=(in one of 20 calls)", wanted(party=_BUSY), 1
    yield "party=(one of 20), page in the middle", wanted(party=_BUSY), max(pages // 40, 1)
    yield "party=(one of 200,000)", wanted(party=_SELDOM), 1
    yield "session_id", wanted(session_id=_SESSION), 1
    yield "one month", month, 1
    yield "one month, page in the middle", month, pages // 12
    yield "party=(one of 20) and status=failed", wanted(party=_BUSY, status="failed"), 1
    yield "direction=inbound and status=failed", wanted(direction="inbound", status="failed"), 1


async def measure(storage: Storage, account_sid: str, count: int) -> None:
    """Print how long each list and window takes."""
    logs = storage.masking_logs
    print(f"{'':<42} {'total':>9} {'first':>9} {'again':>9}   (ms)")
    for name, query, page in questions(count):
        first: list[float] = []
        again: list[float] = []
        total = 0
        for _ in range(3):
            logs._pager = Pager(masked_rows.LISTING)
            for times in (first, again):
                started = time.perf_counter()
                total = (await logs.list(account_sid, query, page, 20)).total
                times.append(1e3 * (time.perf_counter() - started))
        print(f"{name:<42} {total:>9,} {min(first):>9.1f} {min(again):>9.1f}", flush=True)
    for days in (1, 30, 180):
        start, took, total = utc_now() - timedelta(days=days), [], 0
        for _ in range(3):
            started = time.perf_counter()
            total = (await logs.stats(account_sid, start, None)).calls.total
            took.append(1e3 * (time.perf_counter() - started))
        print(f"{f'statistics of {days} days':<42} {total:>9,} {min(took):>9.1f}", flush=True)


async def write_cost(storage: Storage, account_sid: str, count: int) -> None:
    """Print what writing a plain and a masked call costs this process."""
    for round_ in range(3):
        for name in ("plain", "masked"):
            started = time.process_time()
            for _ in range(count // _AT_ONCE):
                await asyncio.gather(*(_write(storage, account_sid, name) for _ in range(_AT_ONCE)))
            await storage.calls.flush()
            spent = 1e6 * (time.process_time() - started) / count
            print(f"round {round_ + 1}: {name:<7} {spent:>7.0f} us of CPU for each call written", flush=True)


async def _write(storage: Storage, account_sid: str, kind: str) -> None:
    record = _record(account_sid, utc_now(), _BUSY, _SELDOM)
    if kind == "plain":
        # As large a record, of no product that has lists of its own.
        record.product = "plain"
    await storage.calls.insert(record, reserve_paise=100)
    for status in ("a_ringing", "a_answered", "b_ringing", "in-progress"):
        record.details = {**(record.details or {}), "status": status}
        storage.calls.update(record)
        await storage.calls.flush()
    _end(record)
    storage.calls.finish(record, charge_paise=60)
    await storage.calls.flush()


@contextlib.asynccontextmanager
async def opened(kind: str) -> AsyncIterator[tuple[Storage, str, Callable[[int], Awaitable[None]]]]:
    """An empty database of a kind, an account, and what fills it."""
    with contextlib.ExitStack() as stack:
        if kind == "sqlite":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-masking-")))
            url = f"sqlite+aiosqlite:///{folder}/trunkline.db"
        else:
            url = await stack.enter_context(running_postgres()).url()
        storage = await Storage.open(url, deliver=False, secrets=SECRETS)
        try:
            account, _ = await storage.accounts.create("Benchmark", balance_paise=100_000_000)
            sid = account.account_sid

            async def fill(count: int) -> None:
                if kind == "sqlite":
                    await asyncio.to_thread(fill_sqlite, folder / "trunkline.db", sid, count)
                else:
                    await fill_postgres(url, sid, count)

            yield storage, sid, fill
        finally:
            await storage.close()


async def run(kinds: list[str], count: int, written: int) -> None:
    """Measure on each kind of database."""
    for kind in kinds:
        async with opened(kind) as (storage, account_sid, fill):
            started = time.perf_counter()
            await fill(count)
            took_s = time.perf_counter() - started
            print(f"\n{kind}: {count:,} masked calls of one account, filled in {took_s:.0f} s")
            await measure(storage, account_sid, count)
            if written:
                await write_cost(storage, account_sid, written)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--written", type=int, default=2_000, help="calls whose writing is measured; 0: none")
    parser.add_argument("--on", default="sqlite,postgres", help="databases")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.on.split(","), arguments.calls, arguments.written))


if __name__ == "__main__":
    main()
