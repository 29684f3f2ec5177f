"""Two servers on one PostgreSQL behind a real Kamailio, which are restarted in turn, and register in turn."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Self

import pytest

from tests.faults.lengths import count
from tests.sipp.exchange import Exchange
from tests.support.kamailio import Front, needs_kamailio
from tests.support.ports import free_port
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.server_process import ServerProcess, wait_until
from tests.support.sipp_run import SIPP, Load, Sipp
from tests.support.waiting import PATIENCE_S

# `make test` installs what is missing here; a run without make goes on with the rest, and says so.
pytestmark = [
    pytest.mark.skipif(SIPP is None, reason="SIPp is not installed (Debian: sip-tester)"),
    needs_kamailio,
    pytest.mark.durable,
    pytest.mark.long(reason="a load of calls over two servers, 30 to 60 s"),
]

_ROUNDS = count("RESTARTS_IN_TURN", short=1, long=2)
_CALLS = count("RESTARTS_IN_TURN_CALLS", short=250, long=400)
_SECRET_KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class Cluster:
    """A front with the nodes "a", which SIPp's trunks and the API calls of the tests know, and "b"."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.front = Front(folder / "front")
        shared = {
            "TRUNKLINE_DATABASE_URL": database_url,
            "TRUNKLINE_SECRET_KEY": _SECRET_KEY,
            "TRUNKLINE_TRUSTED_SOURCES": "127.0.0.1/32",
            "TRUNKLINE_SIP_FRONTS": f"{self.front.host}/32",
            "TRUNKLINE_SIP_OUTBOUND_PROXY": self.front.address,
        }
        self.exchange = Exchange(folder, {**shared, "TRUNKLINE_NODE": "a"})
        self.b = ServerProcess(
            folder / "b", environment={**shared, "TRUNKLINE_MAX_CPS": "1000", "TRUNKLINE_NODE": "b"}
        )

    def start_front(self) -> None:
        nodes = [self.exchange.server, self.b]
        self.front.start([f"sip:127.0.0.1:{node.sip_port}" for node in nodes])

    def place_calls(self, load: Load) -> tuple[Sipp, Sipp]:
        """Start a load: a caller and a callee; returns them when node b has calls too."""
        callee = self.exchange.callee("uas.xml", load)
        caller = self.exchange.caller("uac.xml", load=load, target=self.front.address)
        assert wait_until(partial(carries_calls, self.b), PATIENCE_S), self.front.log()
        return caller, callee

    def drain_b(self) -> int:
        """Drain node b by a command beside node a; returns its exit status."""
        self.exchange.server.command("nodes", "drain", "b", "--wait")
        assert self.b.process is not None
        return self.b.process.wait(PATIENCE_S)


def has_registered(node: ServerProcess) -> bool:
    return "registration registered carrier=" in node.log()


class Registrar:
    """A registrar over UDP: accepts every REGISTER, and keeps Call-ID and Contact of each."""

    def __init__(self) -> None:
        self.port = free_port()
        self.heard: list[tuple[str, str]] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._socket.bind(("127.0.0.1", self.port))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._thread.join(PATIENCE_S)

    def _serve(self) -> None:
        self._socket.settimeout(0.2)
        while self._socket.fileno() >= 0:
            try:
                data, peer = self._socket.recvfrom(65_535)
            except OSError:
                continue  # Nothing came, or it is closed.
            if data.startswith(b"REGISTER"):
                self._accept(data.decode(), peer)

    def _accept(self, request: str, peer: tuple[str, int]) -> None:
        fields = [line for line in request.split("\r\n")[1:] if line]
        kept = [
            line for line in fields if line.startswith(("Via:", "From:", "Call-ID:", "CSeq:", "Contact:"))
        ]
        to = next(line for line in fields if line.startswith("To:"))
        values = {name: value.strip() for name, _, value in (line.partition(":") for line in fields)}
        self.heard.append((values["Call-ID"], values["Contact"]))
        answer = ["SIP/2.0 200 OK", *kept, f"{to};tag=1", "Expires: 60", "Content-Length: 0"]
        self._socket.sendto(("\r\n".join(answer) + "\r\n\r\n").encode(), peer)


def carries_calls(node: ServerProcess) -> bool:
    return node.metric("trunkline_calls_active") >= 2


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
        assert "Traceback" not in made.b.log(), made.b.log()


def test_nodes_that_are_restarted_in_turn_cost_no_call(cluster: Cluster) -> None:
    """
    A drain, one by command and one by SIGTERM, and a new start of one node and then the other under load, as
    in an upgrade: no call fails.
    """
    caller, callee = cluster.place_calls(Load(calls=_CALLS, rate=5.0, pause_ms=1500))
    a = cluster.exchange.server
    for node, drain in [(cluster.b, cluster.drain_b), (a, a.stop)] * _ROUNDS:
        assert drain() == 0, node.log()
        node.start()
        assert wait_until(partial(carries_calls, node), PATIENCE_S), cluster.front.log()
    assert caller.running, "the load ended before the restarts"
    cluster.exchange.finish(caller, callee)
    cluster.exchange.assert_clean()


def test_one_node_registers_and_another_after_its_death(cluster: Cluster) -> None:
    """A registrar sees one binding, at the front; when its node is killed the other renews the same one."""
    with Registrar() as registrar:
        cluster.exchange.server.add_carrier(
            "registered",
            f"udp:127.0.0.1:{registrar.port}",
            outbound=True,
            requires_register=True,
            register_username="u1",
            register_password="secret",
        )
        assert wait_until(lambda: registrar.heard, PATIENCE_S)
        nodes = (cluster.exchange.server, cluster.b)
        assert wait_until(lambda: any(map(has_registered, nodes)), PATIENCE_S)
        holder, spare = sorted(nodes, key=has_registered, reverse=True)
        holder.kill()
        first = registrar.heard[0][0]
        assert {call_id for call_id, _ in registrar.heard} == {first}
        assert wait_until(lambda: registrar.heard[-1][0] != first, PATIENCE_S), spare.log()
        assert wait_until(partial(has_registered, spare), PATIENCE_S)
        assert {contact for _, contact in registrar.heard} == {f"<sip:u1@{cluster.front.address}>"}
        holder.start()
