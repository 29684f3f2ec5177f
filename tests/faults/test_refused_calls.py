"""Calls that are refused because their commit is not answered in time, judged by the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.database_proxy import DatabaseProxy
from tests.faults.lengths import count, seconds
from tests.faults.oracle.explain import assert_nothing_lost
from tests.faults.oracle.nodes_stage import NodesStage
from tests.support.postgres import PostgresServer, running_postgres

pytestmark = [
    pytest.mark.durable,
    pytest.mark.timeout(0),
    pytest.mark.long(reason="two servers, of which one waits 10 s for its database"),
]

_ROUNDS = count("REFUSED_ROUNDS", short=1, long=20)
_RATE = seconds("REFUSED_RATE", short=4.0, long=10.0)
_MIX = {"forwarded": 3, "outbound": 1, "cancelled": 1}
# Longer than a request waits for the database, and than a statement may take.
_LATE_S = 25.0
_REFUSED = 'trunkline_calls_refused_total{reason="not_recorded"}'


@pytest.fixture
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
async def stage(tmp_path: Path, postgres: PostgresServer, proxy: DatabaseProxy) -> NodesStage:
    url = await postgres.url()
    made = NodesStage(tmp_path, url)
    made.b.set(TRUNKLINE_DATABASE_URL=url.replace(str(postgres.folder), str(postgres.folder / "proxy")))
    return made


def test_calls_that_are_refused_late_are_told_to_their_end(stage: NodesStage, proxy: DatabaseProxy) -> None:
    """
    The commits of node b are made, and not answered for longer than a call may wait: those calls are refused.
    Meanwhile node a sends their first webhooks. None is without a record, nor a record without its end.
    """
    with stage:
        stage.callees(ring_s=(0.0, 0.2))
        stage.load(_RATE, _MIX, hold_s=(0.5, 2.0))
        for _ in range(_ROUNDS):
            stage.wait(lambda: stage.b.metric("trunkline_calls_active"), "no call comes up")
            refused = stage.b.metric(_REFUSED)
            proxy.writes_alone, proxy.commit_s = True, _LATE_S
            stage.wait(lambda refused=refused: stage.b.metric(_REFUSED) > refused, "no call is refused")
            stage.wait(lambda: stage.rows(_ENDED_LATE), "no refused call has an end")
            proxy.commit_s = 0.0
            stage.wait(lambda: stage.b.request("GET", "/ready").status == 200, "b takes no calls any more")
        stage.end_calls()
        evidence = stage.evidence()
        logs = [node.log() for node in stage.nodes]
    assert not [log[-6000:] for log in logs if "Traceback" in log]
    assert_nothing_lost(evidence)
    ended = [record for record in evidence.records if record["hangup_cause"] == "NORMAL_TEMPORARY_FAILURE"]
    assert ended and not any(record["price"] for record in ended)


_ENDED_LATE = "SELECT call_sid FROM calls WHERE hangup_cause = 'NORMAL_TEMPORARY_FAILURE'"
