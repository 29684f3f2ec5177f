"""Nodes of two versions on one PostgreSQL behind a Kamailio: an upgrade that migrates, and a refused one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from callcontrol.database import schema
from tests.faults.lengths import SOAK, seconds
from tests.faults.oracle.fronted_stage import FrontedStage, assert_none_failed
from tests.support.kamailio import needs_kamailio
from tests.support.other_version import NEXT_REVISION, NextVersion, make_next_version
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.server_process import ServerFailed, ServerProcess

# `make test` installs what is missing here; a run without make goes on with the rest, and says so.
pytestmark = [
    needs_kamailio,
    pytest.mark.durable,
    pytest.mark.timeout(0),
    pytest.mark.long(reason="servers of two versions, which are restarted in turn under load"),
]

_RATE = seconds("MIXED_RATE", short=4.0, long=10.0)
_MIX = {"forwarded": 4, "streamed": 2, "cancelled": 1}
_HOLD_S = (2.0, 8.0)
_SOON_S = 2.0 if SOAK else 10.0
# What every call reads and writes, and what a node does.
_ADDITIONS = (
    "ALTER TABLE calls ADD COLUMN next_note text",
    "ALTER TABLE wallets ADD COLUMN next_limit bigint NOT NULL DEFAULT 0",
    "ALTER TABLE accounts ADD COLUMN next_flag boolean NOT NULL DEFAULT false",
    "ALTER TABLE phone_numbers ADD COLUMN next_note text",
    "ALTER TABLE webhook_deliveries ADD COLUMN next_note text",
    "ALTER TABLE nodes ADD COLUMN next_note text",
    "CREATE INDEX ix_calls_next ON calls (next_note)",
    "CREATE TABLE next_things (thing text PRIMARY KEY)",
)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
async def database_url(postgres: PostgresServer) -> str:
    return await postgres.url()


@pytest.fixture
def stage(tmp_path: Path, database_url: str) -> Iterator[FrontedStage]:
    with FrontedStage(tmp_path, database_url) as running:
        running.callees(ring_s=(0.0, 0.5))
        yield running


def schemas(node: ServerProcess) -> dict[str, str]:
    """The newest schema that the program of each node knows."""
    return {found["node"]: found["schema"] for found in node.command("nodes", "list")["nodes"]}


def test_an_upgrade_with_a_migration_costs_no_call(stage: FrontedStage, tmp_path: Path) -> None:
    """
    Under load one node is upgraded, whose version migrates the database, while the other goes on; that one is
    started anew on the newer schema, and upgraded as well: no call fails.
    """
    program = make_next_version(tmp_path / "next", *_ADDITIONS)
    stage.load(_RATE, _MIX, hold_s=_HOLD_S)
    stage.carry(*stage.nodes)
    a, b = stage.nodes
    assert b.stop() == 0, b.log()
    stage.b = NextVersion(b, program)
    stage.b.start()
    assert schemas(a) == {"a": schema.HEAD, "b": NEXT_REVISION}
    stage.carry(stage.b)
    assert a.stop() == 0, a.log()
    a.start()
    assert f"the database has the schema {NEXT_REVISION} of a newer version" in a.log()
    stage.carry(a)
    assert a.stop() == 0, a.log()
    stage.server = NextVersion(a, program)
    stage.server.start()
    assert schemas(stage.a) == {"a": NEXT_REVISION, "b": NEXT_REVISION}
    stage.carry(stage.a)
    assert_none_failed(stage.judge(), stage.refusals, _SOON_S)


def test_an_upgrade_that_others_would_not_survive_is_refused(stage: FrontedStage, tmp_path: Path) -> None:
    """
    A version on whose schema this one cannot run does not start while a node of this one runs, and changes
    nothing; without one it starts, and a node of this version does not any more.
    """
    program = make_next_version(tmp_path / "next", "DROP TABLE chat_paces", breaks_this=True)
    a, b = stage.nodes
    assert b.stop() == 0, b.log()
    upgraded = NextVersion(b, program)
    with pytest.raises(ServerFailed, match="cannot go on with the schema of this version: a;"):
        upgraded.start()
    stage.load(_RATE, calls=5, hold_s=(1.5, 2.0))
    stage.wait(lambda: stage.far.counts()["ended"] == 5, "calls do not succeed")
    assert schemas(a) == {"a": schema.HEAD}
    assert a.stop() == 0, a.log()
    upgraded.start()
    stage.b = upgraded
    with pytest.raises(ServerFailed, match="is of a newer version of this program"):
        a.start()
    stage.server = NextVersion(a, program)
    stage.server.start()
    assert_none_failed(stage.judge(), stage.refusals, _SOON_S)
