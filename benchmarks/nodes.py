"""
Nodes that share a PostgreSQL some way off: `python -m benchmarks.nodes [--nodes 1,2,4] [--rate 100]`.

Each node is a process with the services that a server writes calls with, its lease included, and without SIP
and media; a call is inserted with a reserve within the limits of its account, changes its status three times,
ends and is settled. Everything between the nodes and PostgreSQL arrives late by half of `--round-trip-ms`.

It prints how long an insert took, and what a call cost PostgreSQL: CPU of its processes above that of idle
nodes, statements that it executed, BEGIN and COMMIT among them, and commits, by its own statistics; once at a
`--rate` of all nodes together, and once with `--clients` whose calls follow each other without
a pause, which shows how many calls a second are carried. The books must agree, and nobody may deadlock.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]  # the driver comes without types
from sqlalchemy import make_url

from benchmarks.commit_cost import postgres_cpu_s
from benchmarks.machine import describe
from benchmarks.store_writes import PRICE_PAISE, Run
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from tests.faults.database_proxy import DatabaseProxy
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.secrets import SECRETS

__all__ = ["BALANCE_PAISE", "Outcome", "WritingNode", "add_accounts", "ask_database", "distant"]

BALANCE_PAISE: Final = 10**9
_IDLE_S: Final = 3.0
_EXECUTED: Final = (
    "SELECT query, sum(calls)::bigint, sum(plans)::bigint, sum(total_exec_time + total_plan_time)"
    " FROM pg_stat_statements JOIN pg_database ON oid = dbid"
    " WHERE datname = current_database() GROUP BY query"
)
_COMMITS: Final = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    Calls that nodes have written in one run.

    Attributes:
        inserts_s: Times of the inserts, sorted.
        refused: Calls that the database did not take in time.
        took_s: Time from the first call to the end of the last one.
    """

    inserts_s: Sequence[float]
    refused: int
    took_s: float

    def insert_ms(self, share: float) -> float:
        """A percentile of the inserts, in milliseconds."""
        if not self.inserts_s:
            return math.nan
        return 1e3 * self.inserts_s[int(len(self.inserts_s) * share)]


class WritingNode:
    """The process of one node; see the module's text."""

    def __init__(self, url: str, name: str) -> None:
        command = [sys.executable, "-m", "benchmarks.nodes", "--write-as", name, "--url", url]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
        )

    def ask(self, **what: Any) -> None:
        """Ask it to write calls: `rate` or `clients`, `seconds`, `accounts`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Wait until it is ready, or has written its calls."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a node has ended with {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """Tell it to end."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait(self) -> None:
        """Wait until it has left."""
        assert self._process.stdout is not None
        self._process.wait(60)
        self._process.stdout.close()


def drive(nodes: Sequence[WritingNode], **what: Any) -> Outcome:
    """Ask all nodes for the same, and wait for them."""
    began = time.monotonic()
    for node in nodes:
        node.ask(**what)
    answers = [node.answer() for node in nodes]
    inserts_s = sorted(took_s for answer in answers for took_s in answer["inserts_s"])
    return Outcome(inserts_s, sum(answer["refused"] for answer in answers), time.monotonic() - began)


@contextlib.contextmanager
def distant(postgres: PostgresServer, url: str, round_trip_s: float) -> Iterator[str]:
    """Yield the URL of a database behind a relay that delays what it carries."""
    with tempfile.TemporaryDirectory(prefix="tlpx-") as folder:
        proxy = DatabaseProxy(postgres.folder, Path(folder))
        proxy.delay_s = round_trip_s / 2
        try:
            yield url.replace(str(postgres.folder), folder)
        finally:
            proxy.close()


@contextlib.contextmanager
def writing_nodes(url: str, count: int) -> Iterator[list[WritingNode]]:
    """Run so many nodes."""
    nodes = [WritingNode(url, f"n{number}") for number in range(count)]
    try:
        for node in nodes:
            node.answer()
        yield nodes
    finally:
        for node in nodes:
            node.end()
        for node in nodes:
            node.wait()


async def add_accounts(url: str, count: int) -> list[str]:
    """Create accounts with money and without limits that calls could reach."""
    storage = await Storage.open(url, deliver=False, secrets=SECRETS)
    try:
        made = [
            await storage.accounts.create(f"Account {number}", BALANCE_PAISE, max_cps=1000, max_calls=5000)
            for number in range(count)
        ]
    finally:
        await storage.close()
    return [account.account_sid for account, _ in made]


async def ask_database(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement."""
    parsed = make_url(url)
    connection = await asyncpg.connect(
        user=parsed.username, database=parsed.database, host=str(parsed.query["host"])
    )
    try:
        return [tuple(row) for row in await connection.fetch(statement)]
    finally:
        await connection.close()


@dataclass(frozen=True, slots=True)
class _Work:
    """Work of PostgreSQL up to a moment; of each statement the executions, plans and milliseconds."""

    cpu_s: float
    commits: int
    statements: dict[str, tuple[float, ...]]
    updates: dict[str, tuple[int, int]]

    @classmethod
    def now(cls, url: str) -> _Work:
        statements = {
            str(row[0]): tuple(map(float, row[1:])) for row in asyncio.run(ask_database(url, _EXECUTED))
        }
        commits = int(asyncio.run(ask_database(url, _COMMITS))[0][0])
        updates = {
            str(row[0]): (int(row[1]), int(row[2])) for row in asyncio.run(ask_database(url, _UPDATED))
        }
        return cls(postgres_cpu_s(), commits, statements, updates)

    def since(self, before: _Work, idle: _Work | None = None, share: float = 0.0) -> _Work:
        """The work since a moment, without a share of that of idle nodes."""
        none = _Work(0.0, 0, {}, {}) if idle is None else idle
        zeros = (0.0, 0.0, 0.0)
        return _Work(
            self.cpu_s - before.cpu_s - share * none.cpu_s,
            self.commits - before.commits - round(share * none.commits),
            {
                text: tuple(
                    now - then - share * of_idle
                    for now, then, of_idle in zip(
                        found,
                        before.statements.get(text, zeros),
                        none.statements.get(text, zeros),
                        strict=True,
                    )
                )
                for text, found in self.statements.items()
            },
            {
                table: (
                    made - before.updates.get(table, (0, 0))[0],
                    hot - before.updates.get(table, (0, 0))[1],
                )
                for table, (made, hot) in self.updates.items()
            },
        )


def _pause(seconds: float) -> None:
    asyncio.run(asyncio.sleep(seconds))


def measure(postgres: PostgresServer, count: int, asked: argparse.Namespace) -> None:
    """Print the figures of so many nodes, at the rate and with clients."""
    url = asyncio.run(postgres.url())
    asyncio.run(ask_database(url, "CREATE EXTENSION pg_stat_statements"))
    accounts = asyncio.run(add_accounts(url, asked.accounts))
    with distant(postgres, url, asked.round_trip_ms / 1e3) as far, writing_nodes(far, count) as nodes:
        drive(nodes, rate=asked.rate / count, seconds=1.0, accounts=accounts)
        before = _Work.now(url)
        _pause(_IDLE_S)
        idle = _Work.now(url).since(before)
        for load in ({"rate": asked.rate / count}, {"clients": asked.clients // count}):
            before = _Work.now(url)
            found = drive(nodes, seconds=asked.seconds, accounts=accounts, **load)
            work = _Work.now(url).since(before, idle, found.took_s / _IDLE_S)
            _report(count, "clients" if "clients" in load else f"{asked.rate:.0f}/s", found, work, asked.most)
    charged, recorded, deadlocks = (
        int(asyncio.run(ask_database(url, text))[0][0]) for text in (_CHARGED, _RECORDED, DEADLOCKS)
    )
    if deadlocks or charged != PRICE_PAISE * recorded:
        raise SystemExit(f"{deadlocks} deadlocks, {recorded} calls, for which {charged} paise are charged")


def _report(count: int, load: str, found: Outcome, work: _Work, most: int) -> None:
    calls = len(found.inserts_s)
    print(
        f"{count:>5} {load:>8} {calls / found.took_s:>8.0f} {found.insert_ms(0.5):>8.1f}"
        f" {found.insert_ms(0.99):>8.1f} {found.refused:>8} {1e3 * work.cpu_s / calls:>8.2f}"
        f" {sum(times for times, _, _ in work.statements.values()) / calls:>11.2f}"
        f" {work.commits / calls:>8.2f}",
        flush=True,
    )
    for text, (times, plans, took_ms) in sorted(work.statements.items(), key=lambda item: -item[1][2])[:most]:
        figures = f"{times / calls:8.3f} {plans / calls:8.3f} {1e3 * took_ms / calls:8.1f} us"
        print(f"      {figures}  {' '.join(text.split())[:130]}")
    if most:
        updates = {table: found for table, found in work.updates.items() if found[0]}
        print("      updates a call, share of them in the page:", end="")
        print(*(f" {table} {made / calls:.2f} {hot / made:.2f}" for table, (made, hot) in updates.items()))


DEADLOCKS: Final = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
"""Question for the deadlocks of a database."""
_UPDATED: Final = "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables"
_CHARGED: Final = "SELECT -sum(amount_paise)::bigint FROM ledger WHERE kind = 'charge'"
_RECORDED: Final = "SELECT count(*) FROM calls"


async def write_as(name: str, url: str) -> None:
    """Be a node: write the calls that lines of JSON on the input ask for, and tell of each line."""
    storage = await Storage.open(url, StorageSettings(node=name), secrets=SECRETS)
    try:
        print(json.dumps({"ready": True}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            what = json.loads(line)
            run = Run(storage, what["accounts"], what.get("rate", 0.0), what["seconds"], limited=True)
            if "clients" in what:
                await _unpaced(run, what["clients"])
            else:
                await run.drive(run.call)
            print(json.dumps({"inserts_s": run.inserts_s, "refused": run.refused}), flush=True)
    finally:
        await storage.close()


async def _unpaced(run: Run, clients: int) -> None:
    """Clients whose calls follow each other."""
    until = time.monotonic() + run.seconds

    async def client() -> None:
        while time.monotonic() < until:
            await run.call()

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
    await run.storage.calls.flush()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", default="1,2,4")
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--accounts", type=int, default=200)
    parser.add_argument("--round-trip-ms", type=float, default=1.0)
    parser.add_argument("--most", type=int, default=0, help="print so many statements")
    parser.add_argument("--write-as", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.write_as:
        asyncio.run(write_as(asked.write_as, asked.url))
        return
    print(json.dumps(describe()))
    print("nodes     load  calls/s   p50 ms   p99 ms  refused   CPU ms  statements  commits")
    settings = {"shared_preload_libraries": "pg_stat_statements"}
    if asked.most:
        settings["pg_stat_statements.track_planning"] = "on"
    with running_postgres(**settings) as postgres:
        for count in asked.nodes.split(","):
            measure(postgres, int(count), asked)


if __name__ == "__main__":
    main()
