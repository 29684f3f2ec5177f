"""Two servers on one PostgreSQL, which start at once, or of which one is drained or away."""

from __future__ import annotations

import asyncio
import base64
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.faults.lengths import count
from tests.faults.oracle.nodes_stage import NodesStage
from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.kamailio import ask
from tests.support.needs import needs_sipp
from tests.support.ports import free_port
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.server_process import Reply, ServerProcess, wait_until
from tests.support.sipp_run import Load, Sipp
from tests.support.waiting import PATIENCE_S

pytestmark = [
    needs_sipp,
    pytest.mark.durable,
    pytest.mark.long(reason="two servers in processes of their own, of which one drains or is away"),
]

_CALLS = count("NODES_CALLS", short=5, long=50)
_FIRST_STARTS = count("FIRST_STARTS", short=2, long=20)
SECRET_KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
async def shared(postgres: PostgresServer) -> dict[str, str]:
    return {"TRUNKLINE_DATABASE_URL": await postgres.url(), "TRUNKLINE_SECRET_KEY": SECRET_KEY}


@pytest.fixture
def exchange(tmp_path: Path, shared: dict[str, str]) -> Iterator[Exchange]:
    """The node "a", which carries the calls."""
    with Exchange(tmp_path, {**shared, "TRUNKLINE_NODE": "a", "TRUNKLINE_DRAIN_S": "600"}) as running:
        yield running


@pytest.fixture
def other(tmp_path: Path, shared: dict[str, str], exchange: Exchange) -> Iterator[ServerProcess]:
    """The node "b"."""
    made = ServerProcess(tmp_path / "other", environment={**shared, "TRUNKLINE_NODE": "b"})
    with made.starting():
        yield made
    assert made.stop() == 0, made.log()
    assert "Traceback" not in made.log(), made.log()


def start_calls(exchange: Exchange) -> list[Sipp]:
    """Set up calls whose callers and callees wait for a BYE."""
    load = Load(calls=_CALLS, rate=20.0)
    peers = [
        exchange.callee("uas.xml", load),
        exchange.caller("uac_hung_up_on.xml", load=load, extra="-recv_timeout 90000"),
    ]
    assert wait_until(lambda: len(calls(exchange.server, exchange, "in-progress")) == _CALLS, PATIENCE_S)
    return peers


def calls(server: ServerProcess, exchange: Exchange, status: str) -> list[dict[str, Any]]:
    reply = server.request("GET", f"/v1/calls?status={status}&per_page=100", exchange.account.api_key)
    assert reply.status == 200, reply
    found: list[dict[str, Any]] = reply.body["data"]
    return found


def path_of(call: dict[str, Any]) -> str:
    return f"/v1/Accounts/{call['account_sid']}/Calls/{call['call_sid']}"


def recorded(server: ServerProcess, exchange: Exchange) -> list[str]:
    """The calls whose recording can be had."""
    ended = calls(server, exchange, "completed")
    return [str(call["call_sid"]) for call in ended if call["recording_status"] == "completed"]


def nodes(server: ServerProcess) -> dict[str, str]:
    return {node["node"]: node["state"] for node in server.command("nodes", "list")["nodes"]}


def test_a_call_is_controlled_through_another_node(exchange: Exchange, other: ServerProcess) -> None:
    """A node forwards what concerns a call of another one, which answers as if it had been asked itself."""
    peers = start_calls(exchange)
    key = exchange.account.api_key
    up = calls(other, exchange, "in-progress")
    for call in up:
        path = path_of(call)
        muted = other.request("POST", path, key, {"mute_status": "mute"})
        assert (muted.status, muted.data["call_sid"]) == (202, call["call_sid"])
        trace = f"/v1/calls/{call['call_sid']}/trace"
        assert "INVITE" in other.request("GET", trace, key).data["ladder"]
        assert other.request("DELETE", path, key).status == 200
    exchange.finish(*peers)
    for call in up:
        ended = other.request("DELETE", path_of(call), key)
        assert (ended.status, ended.body["error"]["code"]) == (409, "CALL_ENDED")


def test_a_node_is_drained_by_a_command(exchange: Exchange, other: ServerProcess) -> None:
    """
    A node drained by `trunkline nodes drain`, from any machine, refuses new calls and exits 0 when its last
    call, which others still control, has ended; started again it takes calls.
    """
    peers = start_calls(exchange)
    node, key = exchange.server, exchange.account.api_key
    with ThreadPoolExecutor() as pool:
        drained = pool.submit(other.command, "nodes", "drain", "a", "--wait")
        assert wait_until(lambda: node.request("GET", "/ready").status == 503, PATIENCE_S), node.log()
        address = f"127.0.0.1:{node.sip_port}"
        # Load balancers have two seconds to see it.
        assert wait_until(lambda: ask(address, "OPTIONS", f"sip:{address}") == 503, PATIENCE_S)
        assert place(node, exchange, f"sip:callee@127.0.0.1:{exchange.callee_port}").status == 503
        assert nodes(other) == {"a": "draining", "b": "up"}
        assert other.command("nodes", "drain", "a")["active_calls"] == _CALLS
        assert wait_until(lambda: other.metric("trunkline_node_duty_held") == 1, PATIENCE_S)
        assert node.metric("trunkline_node_duty_held") == 0
        for call in calls(other, exchange, "in-progress"):
            assert not drained.done()
            assert other.request("DELETE", path_of(call), key).status == 200
        assert drained.result() == {"node": "a", "state": "ended"}
    exchange.finish(*peers)
    assert node.process is not None and node.process.wait(PATIENCE_S) == 0, node.log()
    assert nodes(other) == {"b": "up"}
    node.start()
    assert nodes(other) == {"a": "up", "b": "up"}


def test_an_active_call_is_not_said_to_have_ended(exchange: Exchange, other: ServerProcess) -> None:
    """
    While the node of a call has its lease and does not answer, the call is on a node that cannot be reached;
    of a change that it got, nobody knows the outcome.
    """
    peers = start_calls(exchange)
    key, process = exchange.account.api_key, exchange.server.process
    assert process is not None
    up = calls(other, exchange, "in-progress")
    process.send_signal(signal.SIGSTOP)
    try:
        reply = other.request("POST", path_of(up[0]), key, {"mute_status": "mute"})
    finally:
        process.send_signal(signal.SIGCONT)
    assert (reply.status, reply.body["error"]["code"]) == (503, "OUTCOME_UNKNOWN")
    for call in up:
        assert other.request("DELETE", path_of(call), key).status == 200
    exchange.finish(*peers)


def test_a_recording_is_deleted_on_a_node_that_is_away(exchange: Exchange, other: ServerProcess) -> None:
    """
    While the node of a recording is away, another one closes it for everybody and does not say that it is
    deleted; the file goes when that node is back.
    """
    exchange.bind(exchange.to_callee(record=True))
    peers = start_calls(exchange)
    key = exchange.account.api_key
    for call in calls(other, exchange, "in-progress"):
        assert other.request("DELETE", path_of(call), key).status == 200
    exchange.finish(*peers)
    assert wait_until(lambda: len(recorded(other, exchange)) == _CALLS, PATIENCE_S)
    call_sid = recorded(other, exchange)[0]
    files = exchange.server.data_dir / "recordings"
    assert exchange.server.stop() == 0
    # As on a machine that is away: the other one does not see its disk.
    files.rename(files.with_name("away"))
    for _ in range(2):
        reply = other.request("DELETE", f"/v1/calls/{call_sid}/recording", key)
        assert (reply.status, reply.body["error"]["code"]) == (503, "NODE_UNREACHABLE")
        assert other.request("GET", f"/recordings/{call_sid}.wav", key).status == 404
    files.with_name("away").rename(files)
    assert (files / f"{call_sid}.wav").exists()
    exchange.server.start()
    assert other.request("GET", f"/recordings/{call_sid}.wav", key).status == 404
    assert other.request("DELETE", f"/v1/calls/{call_sid}/recording", key).status in (204, 404)
    assert not (files / f"{call_sid}.wav").exists()


def place(server: ServerProcess, exchange: Exchange, to: str) -> Reply:
    """Ask for a call that lasts until somebody ends it."""
    body = {"from": FORWARDED, "to": to, "verbs": [{"verb": "pause", "length": 60}] * 5}
    return server.request("POST", "/v1/calls", exchange.account.api_key, body)


def are_up(stage: NodesStage, calls: int) -> bool:
    return stage.far.up() == calls


def test_two_first_starts_at_once(tmp_path: Path, postgres: PostgresServer) -> None:
    """
    Of two servers that start on an empty database both come up, with one demo account and one sandbox, and
    carry calls.
    """
    for attempt in range(_FIRST_STARTS):
        url = asyncio.run(postgres.empty_url())
        folder = tmp_path / str(attempt)
        stage = NodesStage(folder, url, {"TRUNKLINE_SANDBOX_CARRIER": "1"}, rtp_ports=400)
        for node in stage.nodes:
            node.set(TRUNKLINE_SANDBOX_LISTEN=f"udp:127.0.0.1:{free_port()}")
        with stage:
            assert nodes(stage.a) == {"a": "up", "b": "up"}
            logs = [node.log() for node in stage.nodes]
            assert sorted(log.count("API key") for log in logs) == [0, 1], logs
            assert sorted(log.count("another node has the sandbox carrier") for log in logs) == [0, 1]
            stage.load(20.0, calls=_CALLS)
            for _ in range(_CALLS):
                placed = stage.place(stage.a, f"sip:callee@127.0.0.1:{stage.far.callee_port}", length_s=600)
                assert placed.status == 201, placed
            stage.wait(partial(are_up, stage, 2 * _CALLS), "calls do not come up")
            stage.judge()
