"""Two servers behind a Kamailio with PostgreSQL away for longer than their leases, judged by the oracle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.faults import reports
from tests.faults.database_proxy import DatabaseProxy
from tests.faults.lengths import SOAK, count, progress, seconds
from tests.faults.oracle.evidence import Evidence
from tests.faults.oracle.fronted_stage import FrontedStage
from tests.support.kamailio import needs_kamailio
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.server_process import ServerProcess, wait_until

# `make test` installs what is missing here; a run without make goes on with the rest, and says so.
pytestmark = [
    needs_kamailio,
    pytest.mark.durable,
    pytest.mark.timeout(0),
    pytest.mark.long(reason="a load on two servers while their database is away for 30 s"),
]

_AWAY_S = seconds("AWAY_S", short=30.0, long=30.0)
_ROUNDS = count("AWAY_ROUNDS", short=1, long=10)
_RATE = seconds("AWAY_RATE", short=4.0, long=10.0)
_STEADY = count("AWAY_CALLS_UP", short=10, long=60)
_MIX = {"forwarded": 4, "streamed": 2, "cancelled": 1}
_HOLD_S = (2.0, 8.0)
# Who has renewed its lease for two leases may adopt others; so nobody is adopted when that is over.
_TWO_LEASES_S = 16.0
_SILENCE_S = 1.0 if SOAK else 5.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[DatabaseProxy]:
    folder = postgres.folder / "proxy"
    folder.mkdir()
    made = DatabaseProxy(postgres.folder, folder)
    yield made
    made.close()


@pytest.fixture
def stage(tmp_path: Path, postgres: PostgresServer, proxy: DatabaseProxy) -> Iterator[FrontedStage]:
    url = asyncio.run(postgres.url()).replace(str(postgres.folder), str(postgres.folder / "proxy"))
    with FrontedStage(tmp_path, url) as running:
        yield running


def test_a_database_that_is_away_ends_no_call(stage: FrontedStage, proxy: DatabaseProxy) -> None:
    """
    PostgreSQL cannot be reached for 30 s, by neither node: calls that are up go on, new ones are refused, and
    afterwards are carried by both again. Nobody is adopted, and no record, charge or webhook is missing.
    """
    stage.callees(ring_s=(0.0, 0.5))
    nodes = (stage.server, stage.b)
    steady = calls_that_stay(stage)
    before = incarnations(stage.server)
    stage.load(_RATE, _MIX, hold_s=_HOLD_S)
    for number in range(1, _ROUNDS + 1):
        stage.carry(*nodes)
        proxy.vanish()
        lost_at = time.monotonic()
        for node in nodes:
            stage.wait(partial(lacks_database, node), "the database is not said to be lacking")
        wait_till(lost_at + _AWAY_S)
        proxy.come_back()
        back_at = time.monotonic()
        for node in nodes:
            stage.wait(partial(is_ready, node), "a node takes no calls any more")
        stage.wait(partial(answered_since, stage, back_at), "no call is carried any more")
        reports.sample("calls carried again after, s", time.monotonic() - back_at)
        wait_till(back_at + 2 * _TWO_LEASES_S)
        progress(f"away {number} of {_ROUNDS}: {stage.far.counts()}")
    up = {leg["call_id"] for leg in callers(stage) if leg["ended_at"] is None}
    assert steady <= up, f"{len(steady - up)} calls that were up are lost"
    assert incarnations(stage.server) == before
    assert not sum(node.metric("trunkline_node_adoptions_total") for node in nodes)
    assert_none_ended(stage.judge(), steady)


def assert_none_ended(evidence: Evidence, steady: set[str]) -> None:
    """All calls were carried, given up by their callers, or refused with 503; those that stay are heard."""
    ended = {"CRASH", "SYSTEM_SHUTDOWN"}
    assert not [record for record in evidence.records if record["hangup_cause"] in ended]
    callers = [leg for leg in evidence.legs if leg.role == "caller"]
    refused = [leg for leg in callers if not leg.answered and leg.ended_by != "cancelled"]
    assert refused and {leg.status for leg in refused} == {503}, refused
    silence_s = max(leg.longest_silence_s for leg in callers if leg.call_id in steady)
    reports.sample("longest silence, s", silence_s)
    assert silence_s < _SILENCE_S


def calls_that_stay(stage: FrontedStage) -> set[str]:
    """Set up calls on both nodes that nobody hangs up; returns their Call-IDs."""
    stage.set_up_calls_that_stay(_STEADY)
    stage.wait(lambda: all(leg["answered_at"] for leg in callers(stage)), "calls do not come up")
    return {leg["call_id"] for leg in callers(stage)}


def callers(stage: FrontedStage) -> list[dict[str, Any]]:
    return [leg for leg in stage.far.seen()["legs"] if leg["role"] == "caller"]


def answered_since(stage: FrontedStage, moment: float) -> bool:
    return any(leg["began_at"] > moment and leg["answered_at"] is not None for leg in callers(stage))


def lacks_database(node: ServerProcess) -> bool:
    reply = node.request("GET", "/ready")
    return reply.status == 503 and reply.body.get("lacks") == "database"


def is_ready(node: ServerProcess) -> bool:
    return node.request("GET", "/ready").status == 200


def wait_till(moment: float) -> None:
    wait_until(lambda: time.monotonic() >= moment, max(moment - time.monotonic(), 0.0))


def incarnations(node: ServerProcess) -> dict[str, tuple[str, str]]:
    """State and start of each node, as the operator sees them."""
    listed = node.command("nodes", "list")["nodes"]
    return {found["node"]: (found["state"], found["started_at"]) for found in listed}
