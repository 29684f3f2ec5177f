"""Nodes of two versions on one PostgreSQL behind a Kamailio: an upgrade that migrates, and a refused one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from callcontrol.database import schema
from tests.faults.test_fronted_nodes import Cluster, carries_calls
from tests.support.kamailio import needs_kamailio
from tests.support.other_version import NEXT_REVISION, NextVersion, make_next_version
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.server_process import ServerFailed, ServerProcess, wait_until
from tests.support.sipp_run import SIPP, Load
from tests.support.waiting import PATIENCE_S

# `make test` installs what is missing here; a run without make goes on with the rest, and says so.
pytestmark = [
    pytest.mark.skipif(SIPP is None, reason="SIPp is not installed (Debian: sip-tester)"),
    needs_kamailio,
    pytest.mark.durable,
    pytest.mark.long(reason="servers of two versions, which are restarted in turn under load"),
]

# Ended when the upgrade is over.
_ENDLESS = Load(calls=10_000, rate=5.0, pause_ms=1500)
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
def cluster(tmp_path: Path, database_url: str) -> Iterator[Cluster]:
    made = Cluster(tmp_path, database_url)
    with made.front, made.exchange:
        with made.b.starting():
            made.start_front()
            yield made
        if made.b.process is not None and made.b.process.poll() is None:
            made.b.stop()


def schemas(node: ServerProcess) -> dict[str, str]:
    """The newest schema that the program of each node knows."""
    return {found["node"]: found["schema"] for found in node.command("nodes", "list")["nodes"]}


def test_an_upgrade_with_a_migration_costs_no_call(cluster: Cluster, tmp_path: Path) -> None:
    """
    Under load one node is upgraded, whose version migrates the database, while the other goes on; that one is
    started anew on the newer schema, and upgraded as well: no call fails.
    """
    program = make_next_version(tmp_path / "next", *_ADDITIONS)
    caller, callee = cluster.place_calls(_ENDLESS)
    a, b = cluster.exchange.server, cluster.b
    assert b.stop() == 0, b.log()
    cluster.b = NextVersion(b, program)
    cluster.b.start()
    assert schemas(a) == {"a": schema.HEAD, "b": NEXT_REVISION}
    assert wait_until(partial(carries_calls, cluster.b), PATIENCE_S), cluster.front.log()
    assert a.stop() == 0, a.log()
    a.start()
    assert f"the database has the schema {NEXT_REVISION} of a newer version" in a.log()
    assert wait_until(partial(carries_calls, a), PATIENCE_S), cluster.front.log()
    assert a.stop() == 0, a.log()
    cluster.exchange.server = NextVersion(a, program)
    cluster.exchange.server.start()
    assert schemas(a) == {"a": NEXT_REVISION, "b": NEXT_REVISION}
    assert wait_until(partial(carries_calls, cluster.exchange.server), PATIENCE_S), cluster.front.log()
    caller.place_no_more()
    seen = caller.wait(PATIENCE_S)
    callee.stop()
    assert seen.failed == 0 and seen.successful > 0 and seen.exit_status == 0, seen.errors
    cluster.exchange.assert_clean()


def test_an_upgrade_that_others_would_not_survive_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """
    A version on whose schema this one cannot run does not start while a node of this one runs, and changes
    nothing; without one it starts, and a node of this version does not any more.
    """
    program = make_next_version(tmp_path / "next", "DROP TABLE chat_paces", breaks_this=True)
    a, b = cluster.exchange.server, cluster.b
    assert b.stop() == 0, b.log()
    upgraded = NextVersion(b, program)
    with pytest.raises(ServerFailed, match="cannot go on with the schema of this version: a;"):
        upgraded.start()
    load = Load(calls=5, rate=5.0)
    callee = cluster.exchange.callee(load=load)
    cluster.exchange.finish(
        cluster.exchange.caller("uac.xml", load=load, target=cluster.front.address), callee
    )
    assert schemas(a) == {"a": schema.HEAD}
    assert a.stop() == 0, a.log()
    upgraded.start()
    cluster.b = upgraded
    with pytest.raises(ServerFailed, match="is of a newer version of this program"):
        a.start()
    cluster.exchange.server = NextVersion(a, program)
    cluster.exchange.server.start()
