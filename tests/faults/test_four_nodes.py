"""Four nodes whose PostgreSQL is a millisecond away, with calls of many accounts on all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from benchmarks.nodes import (
    BALANCE_PAISE,
    DEADLOCKS,
    add_accounts,
    ask_database,
    distant,
    drive,
    writing_nodes,
)
from benchmarks.store_writes import PRICE_PAISE
from callcontrol.accounts.store import set_webhook_secrets
from callcontrol.bootstrap.aio.services import Storage
from tests.faults import reports
from tests.faults.lengths import SOAK, count, progress, seconds
from tests.faults.oracle.evidence import Evidence
from tests.faults.oracle.nodes_stage import NodesStage, wait_till
from tests.support.customers import add_registered_number
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.secrets import SECRETS
from tests.support.server_process import Account

pytestmark = [
    pytest.mark.durable,
    pytest.mark.timeout(0),
    pytest.mark.long(reason="four nodes in processes of their own"),
]

_NODES: Final = 4
_ROUND_TRIP_S: Final = 0.001
_ACCOUNTS: Final = count("FOUR_NODES_ACCOUNTS", short=40, long=200)
_CALLS_S: Final = seconds("FOUR_NODES_S", short=5.0, long=60.0)
# Whole servers and their far ends share this machine; the rate of the database is that of the other test.
_RATE: Final = float(count("FOUR_NODES_RATE", short=10, long=20))
_WRITTEN_RATE: Final = float(count("FOUR_NODES_WRITTEN_RATE", short=100, long=100))
# Few accounts, so that transactions meet at their wallets: without turns there are deadlocks then.
_WRITTEN_ACCOUNTS: Final = count("FOUR_NODES_WRITTEN_ACCOUNTS", short=6, long=200)
_INSERT_MS: Final = 100.0
_CLIENTS: Final = 16
_RTP_PORTS: Final = 400

_ENDED: Final = "SELECT node, count(*) FROM calls WHERE ended_at > 0 GROUP BY 1"
_BOOKS: Final = f"""
    SELECT
        (SELECT -sum(amount_paise) FROM ledger WHERE kind = 'charge')::bigint,
        (SELECT sum(price_paise) FROM calls)::bigint,
        (SELECT {BALANCE_PAISE} * count(*) - sum(balance_paise) FROM wallets)::bigint,
        (SELECT sum(reserved_paise) FROM wallets)::bigint,
        (SELECT count(*) FROM reserves)
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class ManyAccounts(NodesStage):
    """
    The stage of nodes with customers, each of whom has a number, beside the account of the stage.

    Attributes:
        customers: Their accounts and numbers.
    """

    customers: list[tuple[Account, str]]

    def furnish(self, url: str, number: int) -> None:
        """Add customers whose events are signed as those of the stage's account."""
        self.customers = asyncio.run(self._customers(url, number))
        self._balance_paise = self._sum("balance_paise")
        newest = self.rows("SELECT max(revision) FROM directory_revision")[0][0]
        self.wait(
            lambda: all(node.metric("trunkline_directory_revision") >= newest for node in self.nodes),
            "a node does not know the customers",
        )

    async def _customers(self, url: str, number: int) -> list[tuple[Account, str]]:
        storage = await Storage.open(url, deliver=False, secrets=SECRETS)
        try:
            return [await self._customer(storage, f"+9180471{n:05d}") for n in range(number)]
        finally:
            await storage.close()

    async def _customer(self, storage: Storage, number: str) -> tuple[Account, str]:
        made, key = await storage.accounts.create(number, BALANCE_PAISE, True, max_cps=1000, max_calls=5000)
        await add_registered_number(storage, made.account_sid, number)
        await storage.accounts.change(
            made.account_sid,
            lambda account, _: replace(account, webhook_secret=self._secret),
            set_webhook_secrets,
        )
        return Account(made.account_sid, key), number

    def place_all(self, rate: float, length_s: float) -> list[float]:
        """Place calls, one after the other at all nodes and of all customers; how long each answer took."""
        began = time.monotonic()

        def one(number: int) -> float:
            node = self.nodes[number % len(self.nodes)]
            account, caller = self.customers[number % len(self.customers)]
            to = f"sip:callee@127.0.0.1:{self.far.callee_port}"
            answer = self.place(node, to, length_s=1, key=account.api_key, **{"from": caller})
            assert answer.status == 201, answer
            return answer.took_s

        with ThreadPoolExecutor(_CLIENTS) as pool:
            asking = []
            for number in range(int(rate * length_s)):
                wait_till(began + number / rate)
                asking.append(pool.submit(one, number))
            return sorted(asked.result() for asked in asking)

    def evidence(self) -> Evidence:
        """Return the evidence of all parties, with the lists of all customers."""
        found = super().evidence()
        own = self.account
        for account, _ in self.customers:
            self.account = account
            found.records += self.pages("/v1/calls")
            found.ledger += self.pages("/v1/wallet/ledger?kind=charge")
        self.account = own
        found.balance_after_paise = self._sum("balance_paise")
        found.reserved_paise = self._sum("reserved_paise")
        return found

    def _sum(self, column: str) -> int:
        return int(self.rows(f"SELECT sum({column}) FROM wallets")[0][0])


def deadlocks(url: str) -> int:
    """Count those that PostgreSQL has seen in a database, by what its ended connections have told."""
    return int(asyncio.run(ask_database(url, DEADLOCKS))[0][0])


def test_calls_of_many_accounts_on_four_servers(tmp_path: Path, postgres: PostgresServer) -> None:
    """Calls of many accounts on four servers: no deadlock, and every record, charge and event agrees."""
    url = asyncio.run(postgres.url())
    with distant(postgres, url, _ROUND_TRIP_S) as far:
        with ManyAccounts(tmp_path, far, others=("c", "d"), rtp_ports=_RTP_PORTS) as stage:
            stage.furnish(url, _ACCOUNTS)
            stage.callees(ring_s=(0.0, 0.2))
            took_s = stage.place_all(_RATE, _CALLS_S)
            stage.wait(lambda: stage.far.counts()["ended"] >= len(took_s), "ends are not told")
            evidence = stage.judge()
    assert len(evidence.records) == len(took_s)
    assert deadlocks(url) == 0
    reports.sample("answer to POST /v1/calls, p99, ms", 1e3 * took_s[int(0.99 * len(took_s))])


def test_four_nodes_write_calls_of_many_accounts(postgres: PostgresServer) -> None:
    """Calls that four nodes write at a rate: no deadlock, and the books of the database agree."""
    url = asyncio.run(postgres.url())
    accounts = asyncio.run(add_accounts(url, _WRITTEN_ACCOUNTS))
    with distant(postgres, url, _ROUND_TRIP_S) as far, writing_nodes(far, _NODES) as nodes:
        # The statements are prepared with the first calls.
        first = drive(nodes, rate=_WRITTEN_RATE / _NODES, seconds=1.0, accounts=accounts)
        found = drive(nodes, rate=_WRITTEN_RATE / _NODES, seconds=_CALLS_S, accounts=accounts)
    p99_ms, rate = found.insert_ms(0.99), len(found.inserts_s) / found.took_s
    progress(f"{rate:.0f} calls/s, insert p50 {found.insert_ms(0.5):.1f} ms, p99 {p99_ms:.1f} ms")
    reports.sample("insert of a call, p99, ms", p99_ms)
    assert first.refused == found.refused == 0 and deadlocks(url) == 0
    calls = len(first.inserts_s) + len(found.inserts_s)
    assert calls == int(_WRITTEN_RATE) + int(_WRITTEN_RATE * _CALLS_S)
    ended = dict(asyncio.run(ask_database(url, _ENDED)))
    assert len(ended) == _NODES and sum(ended.values()) == calls
    assert asyncio.run(ask_database(url, _BOOKS)) == [(*[PRICE_PAISE * calls] * 3, 0, 0)]
    if SOAK:
        assert p99_ms <= _INSERT_MS and rate >= 0.95 * _WRITTEN_RATE
