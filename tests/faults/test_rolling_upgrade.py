"""An upgrade of two servers behind a Kamailio, one after the other, under load, judged by the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.faults import reports
from tests.faults.lengths import SOAK, count, progress, seconds
from tests.faults.oracle.evidence import Evidence, Leg
from tests.faults.oracle.explain import assert_nothing_lost
from tests.faults.oracle.fronted_stage import FrontedStage
from tests.faults.test_fronted_nodes import carries_calls
from tests.support.kamailio import needs_kamailio
from tests.support.other_version import NextVersion, make_next_version
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.server_process import ServerProcess
from tests.support.waiting import PATIENCE_S

# `make test` installs what is missing here; a run without make goes on with the rest, and says so.
pytestmark = [
    needs_kamailio,
    pytest.mark.durable,
    pytest.mark.timeout(0),
    pytest.mark.long(reason="two servers, each of which is drained and started under load"),
]

_ROUNDS = count("UPGRADE_ROUNDS", short=1, long=10)
_RATE = seconds("UPGRADE_RATE", short=4.0, long=10.0)
_MIX = {"forwarded": 4, "streamed": 2, "cancelled": 1}
_HOLD_S = (2.0, 8.0)
# Far ends send a packet each 0.2 s; a machine with more to do than it can delays whole processes.
_SILENCE_S = 1.0 if SOAK else 5.0
_SET_UP_S = 2.5 if SOAK else 10.0
_ADDITIONS = (
    "ALTER TABLE calls ADD COLUMN next_note text",
    "ALTER TABLE wallets ADD COLUMN next_limit bigint NOT NULL DEFAULT 0",
    "ALTER TABLE webhook_deliveries ADD COLUMN next_note text",
)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
async def database_url(postgres: PostgresServer) -> str:
    return await postgres.url()


def upgrade(stage: FrontedStage, node: ServerProcess, program: Path) -> NextVersion:
    """Drain a node and start the version in a folder in its place, and wait until it carries calls."""
    status = node.stop()
    assert status == 0, node.log()[-4000:]
    upgraded = NextVersion(node, program)
    upgraded.start()
    stage.wait(partial(carries_calls, upgraded), "the upgraded node gets no calls", 3 * PATIENCE_S)
    return upgraded


def test_an_upgrade_of_both_nodes_loses_nothing(tmp_path: Path, database_url: str) -> None:
    """
    Both nodes are upgraded under load, one after the other, the first of them with a migration: no call is
    refused or lost, nobody waits or hears silence for long, and no record, charge or webhook is missing.
    """
    program = make_next_version(tmp_path / "next", *_ADDITIONS)
    with FrontedStage(tmp_path, database_url) as stage:
        stage.callees(ring_s=(0.0, 0.5))
        stage.load(_RATE, _MIX, hold_s=_HOLD_S)
        for node in (stage.server, stage.b):
            stage.wait(partial(carries_calls, node), "calls do not come up")
        for number in range(1, _ROUNDS + 1):
            stage.b = upgrade(stage, stage.b, program)
            stage.server = upgrade(stage, stage.server, program)
            progress(f"upgrade {number} of {_ROUNDS}: {stage.far.counts()}")
        stage.end_calls()
        evidence = stage.evidence()
        logs = [node.log() for node in (stage.server, stage.b)]
    assert not [log for log in logs if "Traceback" in log]
    assert_nothing_lost(evidence)
    # On a machine with more to do than it can, nodes refuse calls, whatever their version.
    sheds = not SOAK and any("overload: work waits" in log for log in logs)
    assert_none_failed(evidence, refusals={503} if sheds else set())


def assert_none_failed(evidence: Evidence, refusals: set[int]) -> None:
    """All calls were answered soon unless their callers gave up, ended by a far end, and heard throughout."""
    failed = {"CRASH", "SYSTEM_SHUTDOWN"}
    assert not [record for record in evidence.records if record["hangup_cause"] in failed]
    callers = [leg for leg in evidence.legs if leg.role == "caller"]
    assert callers
    lost = [leg for leg in callers if not leg.answered and leg.ended_by != "cancelled"]
    assert {leg.status for leg in lost} <= refusals, lost
    talked = [leg for leg in evidence.legs if leg.answered and leg.dialog_s > 1.0]
    set_up_s = max(_set_up_s(leg) for leg in callers)
    silence_s = max(leg.longest_silence_s for leg in talked if leg.kind != "streamed")
    reports.sample("longest set-up, s", set_up_s)
    reports.sample("longest silence, s", silence_s)
    assert set_up_s < _SET_UP_S
    assert silence_s < _SILENCE_S


def _set_up_s(leg: Leg) -> float:
    return leg.answered_at - leg.began_at if leg.answered_at is not None else 0.0
