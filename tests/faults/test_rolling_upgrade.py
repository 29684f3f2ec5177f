"""An upgrade of two servers behind a Kamailio, one after the other, under load, judged by the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.lengths import SOAK, count, progress, seconds
from tests.faults.oracle.fronted_stage import FrontedStage, assert_none_failed
from tests.support.kamailio import needs_kamailio
from tests.support.other_version import NextVersion, make_next_version
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.server_process import ServerProcess

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
_SOON_S = 2.0 if SOAK else 10.0
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
    stage.carry(upgraded)
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
        stage.carry(*stage.nodes)
        for number in range(1, _ROUNDS + 1):
            stage.b = upgrade(stage, stage.b, program)
            stage.server = upgrade(stage, stage.server, program)
            progress(f"upgrade {number} of {_ROUNDS}: {stage.far.counts()}")
        assert_none_failed(stage.judge(), stage.refusals, _SOON_S)
