"""
Time to find contacts: `python -m benchmarks.contacts_scale [--contacts 100000]`.

Has one account add contacts with names in three scripts, many at once as requests do, then reads what
GET /api/v1/contacts reads: pages at both ends, and searches that find nobody, one, some and everybody. Each
is the best of five, in milliseconds, from the question to the contacts. PostgreSQL is started in a folder of
its own, and has done its housekeeping (VACUUM ANALYZE) as it does within minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # the driver comes without types
import sqlalchemy as sa

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.messaging.store import contacts as contact_rows
from tests.support.postgres import running_postgres
from tests.support.secrets import SECRETS

_AT_ONCE = 500
_FIRST = ("Asha", "Ravi", "Élodie", "Suresh", "आशा", "Łukasz", "Ngozi", "Fatima", "Kiran", "Thomas")
_LAST = ("Rao", "Sharma", "Nair", "Dubois", "वर्मा", "D'Souza", "Kowalski", "Okafor", "Begum", "Iyer")


def number(index: int) -> str:
    """The number of a contact."""
    return f"+9198{index:08d}"


def people(count: int) -> Iterator[dict[str, Any]]:
    """Names and numbers of the contacts."""
    chance = random.Random(1)
    for index in range(count):
        yield {
            "phone_number": number(index),
            "first_name": chance.choice(_FIRST),
            "last_name": chance.choice(_LAST),
            "email": f"customer.{index}@example.com",
            "custom_fields": {"city": "Pune", "orders": index % 10},
            "notes": "Asked to be told of sales, and of nothing else. " * 3,
        }


def questions(count: int) -> Iterator[tuple[str, str, int]]:
    """Searches, with the page."""
    yield "all, page 1", "", 1
    yield "all, last page", "", count // 50
    yield "search that finds nobody", "zzzzzz", 1
    yield "search by a whole number", number(count - 1), 1
    yield "search by the end of a number", number(count // 2)[-6:], 1
    yield "search by both names", "éLODIE dub", 1
    yield "search by a first name", "आशा", 1
    yield "search that finds everybody", "@EXAMPLE.COM", 1
    yield "search that finds everybody, last page", "@EXAMPLE.COM", count // 50


async def measure(storage: Storage, account_sid: str, count: int) -> None:
    """Print how long each list takes."""
    print(f"{'':<42} {'total':>9} {'ms':>9}")
    for name, search, page in questions(count):
        took, total = [], 0
        for _ in range(5):
            started = time.perf_counter()
            total = (await storage.contacts.list(account_sid, search, page, 50)).total
            took.append(1e3 * (time.perf_counter() - started))
        print(f"{name:<42} {total:>9,} {min(took):>9.1f}", flush=True)
    asked, took = [number(index) for index in range(0, count, max(count // 1000, 1))], []
    for _ in range(5):
        started = time.perf_counter()
        await storage.database.read(lambda rows: contact_rows.opted_out(rows, account_sid, asked))
        took.append(1e3 * (time.perf_counter() - started))
    print(f"{'which of 1,000 numbers have opted out':<42} {0:>9,} {min(took):>9.1f}", flush=True)


async def run(kind: str, url: str, count: int) -> None:
    """Fill one database, and measure."""
    storage = await Storage.open(url, deliver=False, secrets=SECRETS)
    try:
        account, _ = await storage.accounts.create("Benchmark")
        sid, waiting, started = account.account_sid, list(people(count)), time.perf_counter()
        for begin in range(0, count, _AT_ONCE):
            some = waiting[begin : begin + _AT_ONCE]
            await asyncio.gather(*(storage.contacts.create(sid, values) for values in some))
        took_s = time.perf_counter() - started
        print(f"\n{kind}: {count:,} contacts of one account, {count / took_s:,.0f} added a second")
        if kind == "postgres":
            await tidied(url)
        await measure(storage, sid, count)
    finally:
        await storage.close()


async def tidied(url: str) -> None:
    """Run PostgreSQL's housekeeping now."""
    parsed = sa.make_url(url)
    connection = await asyncpg.connect(
        user=parsed.username, database=parsed.database, host=parsed.query["host"]
    )
    try:
        await connection.execute("VACUUM ANALYZE contacts")
    finally:
        await connection.close()


async def run_all(kinds: list[str], count: int) -> None:
    """Measure on each kind of database."""
    if "sqlite" in kinds:
        with tempfile.TemporaryDirectory(prefix="trunkline-contacts-") as folder:
            await run("sqlite", f"sqlite+aiosqlite:///{folder}/trunkline.db", count)
    if "postgres" in kinds:
        with running_postgres() as server:
            await run("postgres", await server.url(), count)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--contacts", type=int, default=100_000)
    parser.add_argument("--on", default="sqlite,postgres", help="databases")
    arguments = parser.parse_args()
    asyncio.run(run_all(arguments.on.split(","), arguments.contacts))


if __name__ == "__main__":
    main()
