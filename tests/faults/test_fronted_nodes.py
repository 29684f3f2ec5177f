"""Two servers behind a real Kamailio: whose calls are, and what restarts and deaths cost, by the oracle."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Self

import pytest

from tests.faults import reports
from tests.faults.lengths import SOAK, count, progress, seconds
from tests.faults.oracle.evidence import Leg
from tests.faults.oracle.fronted_stage import FrontedStage, assert_none_failed
from tests.faults.oracle.stage import FORWARDED, FarEnds
from tests.faults.test_killed_node import assert_others_are_whole
from tests.support.kamailio import ask, needs_kamailio
from tests.support.needs import needs_sipp
from tests.support.ports import free_port
from tests.support.postgres import running_postgres
from tests.support.server_process import ServerProcess
from tests.support.sipp_run import Load, start_sipp
from tests.support.waiting import PATIENCE_S

# `make test` installs what is missing here; a run without make goes on with the rest, and says so.
pytestmark = [
    needs_kamailio,
    pytest.mark.durable,
    pytest.mark.timeout(0),
    pytest.mark.long(reason="loads of calls over two servers, whose leases one waits out"),
]

_ROUNDS = count("RESTARTS_IN_TURN", short=1, long=4)
_FRONTS = count("FRONT_RESTARTS", short=1, long=5)
_DEATHS = count("REGISTRAR_KILLS", short=1, long=4)
_CALLS = count("FRONTED_CALLS", short=6, long=40)
_RATE = seconds("FRONTED_RATE", short=4.0, long=10.0)
_FLOODS = count("FRONTED_FLOODS", short=1, long=3)
_MIX = {"forwarded": 4, "streamed": 2, "cancelled": 1}
_HOLD_S = (2.0, 8.0)
_SOON_S = 0.5 if SOAK else 5.0
_REGISTERED_S = 15.0 if SOAK else 40.0


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontedStage]:
    with running_postgres() as postgres:
        url = asyncio.run(postgres.url())
        with FrontedStage(tmp_path_factory.mktemp("fronted"), url) as running:
            yield running


@pytest.fixture(autouse=True)
def judged(stage: FrontedStage) -> Iterator[None]:
    """Both nodes run before and after a test, and no call is lost."""
    stage.callees(ring_s=(0.0, 0.5))
    yield
    if not stage.b_runs:
        stage.revive_b()
    stage.judge()


def test_each_call_has_its_carrier(stage: FrontedStage, tmp_path: Path) -> None:
    """Of two carriers with addresses of their own that call by the front each call has its carrier."""
    far, other = stage.far, FarEnds(stage.server, tmp_path, seed=2, sip_port=stage.front.port)
    carriers = dict(stage.rows("SELECT name, carrier_sid FROM carriers"))
    carriers["others"] = stage.a.add_carrier("others", f"udp:127.0.0.1:{other.caller_port}", inbound=True)
    stage.wait(partial(knows_carriers, stage), "a node does not know the carrier")
    began, before = time.monotonic(), far.counts()["callees_up"]
    try:
        stage.load(_RATE, calls=_CALLS)
        numbers = {"forwarded": FORWARDED}
        other.ask("start", rate=_RATE, mix={"forwarded": 1.0}, calls=_CALLS, numbers=numbers)
        stage.wait(lambda: far.up() >= before + 2 * _CALLS, "calls do not come up")
        far.ask("hang_up")
        stage.wait(lambda: not other.counts()["open"], "calls are left at the other carrier")
        legs = [Leg(**leg) for leg in other.seen()["legs"]]
    finally:
        other.close()
    stage.legs += legs
    evidence = stage.judge()
    found = {record["sip_call_id"]: record["carrier_sid"] for record in evidence.records}
    theirs = {leg.call_id: carriers["others"] for leg in legs}
    ours = {
        leg.call_id: carriers["callers"]
        for leg in evidence.legs
        if leg.role == "caller" and leg.began_at >= began and leg.call_id not in theirs
    }
    assert len(theirs) == len(ours) == _CALLS
    assert {call_id: found[call_id] for call_id in ours | theirs} == ours | theirs


def knows_carriers(stage: FrontedStage) -> bool:
    newest = stage.rows("SELECT max(revision) FROM directory_revision")[0][0]
    return all(node.metric("trunkline_directory_revision") >= newest for node in stage.nodes)


def test_nobody_names_its_own_source(stage: FrontedStage) -> None:
    """A stranger that names a carrier as its source is refused, by the front and by each node."""
    forged = [f"X-Trunkline-Source: udp:127.0.0.1:{stage.far.caller_port}"]
    nodes = [f"127.0.0.1:{node.sip_port}" for node in stage.nodes]
    for number, target in enumerate([stage.front.address, *nodes]):
        host = f"127.0.0.{31 + number}"
        assert ask(target, "INVITE", f"sip:{FORWARDED}@127.0.0.1", host=host, fields=forged) == 403


@needs_sipp
def test_a_flood_by_the_front_bans_who_floods(stage: FrontedStage, tmp_path: Path) -> None:
    """A stranger floods the nodes by the front: it is banned, the front is not, and no good call fails."""
    for number in range(_FLOODS):
        began, stranger = time.monotonic(), f"127.0.0.{41 + number}"
        stage.load(_RATE, _MIX, hold_s=_HOLD_S)
        stage.carry(*stage.nodes)
        ended = stage.far.counts()["ended"]
        flood = start_sipp(
            "uac_flood.xml",
            tmp_path,
            free_port(),
            Load(calls=1000, rate=100),
            target=stage.front.address,
            number=FORWARDED,
            extra=["-i", stranger, "-mp", str(free_port())],
        )
        try:
            stage.wait(partial(is_banned, stage, stranger), "nobody is banned")
            stage.wait(partial(have_ended, stage, ended + _CALLS), "good calls do not go on")
        finally:
            flood.kill()
        assert_none_failed(stage.judge(), stage.refusals, _SOON_S, began)
        assert not is_banned(stage, "127.0.0.1")


def have_ended(stage: FrontedStage, calls: int) -> bool:
    return bool(stage.far.counts()["ended"] >= calls)


def is_banned(stage: FrontedStage, source: str) -> bool:
    return any(f"banned source={source} " in node.log() for node in stage.nodes)


def drain_by_command(stage: FrontedStage, node: ServerProcess) -> int:
    """Drain node b by a command beside node a; returns its exit status."""
    stage.a.command("nodes", "drain", "b", "--wait")
    assert node.process is not None
    return node.process.wait(PATIENCE_S)


def drain_by_signal(_: FrontedStage, node: ServerProcess) -> int:
    return node.stop()


Drain = Callable[[FrontedStage, ServerProcess], int]


def test_nodes_that_are_restarted_in_turn_cost_no_call(stage: FrontedStage) -> None:
    """
    Drains, by command and by SIGTERM, and new starts of one node and then the other under load: no call fails
    or is refused, none is set up late, and all are heard throughout.
    """
    began = time.monotonic()
    stage.load(_RATE, _MIX, hold_s=_HOLD_S)
    stage.carry(*stage.nodes)
    in_turn: list[tuple[ServerProcess, Drain]] = [
        (stage.b, drain_by_command),
        (stage.a, drain_by_signal),
        (stage.b, drain_by_signal),
    ]
    for number in range(_ROUNDS):
        for node, drain in in_turn:
            assert drain(stage, node) == 0, node.log()
            stage.start(node)
            stage.carry(node)
        progress(f"round {number + 1} of {_ROUNDS}: {stage.far.counts()}")
    assert_none_failed(stage.judge(), stage.refusals, _SOON_S, began)


def test_a_restart_of_the_front_breaks_no_call(stage: FrontedStage) -> None:
    """
    Calls into and out of both nodes go by the front. It is restarted under them: what then ends them, a
    caller, a callee or a node, reaches the other side.
    """
    for _ in range(_FRONTS):
        began = time.monotonic()
        stage.load(_RATE, calls=_CALLS)
        callee = f"sip:callee@127.0.0.1:{stage.far.callee_port}"
        for number in range(_CALLS):
            placed = stage.place(stage.nodes[number % 2], callee, length_s=600)
            assert placed.status == 201, placed
        stage.wait(lambda: len(stage.active()) == stage.far.up() == 2 * _CALLS, "calls do not come up")
        stage.carry(*stage.nodes)
        stage.front.stop()
        stage.start_front()
        # Calls of either direction are among those that the nodes end, and among the others.
        up = stage.rows("SELECT call_sid FROM calls WHERE ended_at IS NULL ORDER BY direction, node")
        for (call_sid,) in up[::3]:
            assert stage.ask(stage.a, "DELETE", stage.path_of(call_sid)).status == 200
        for side in ("callers", "callees"):
            stage.far.ask("hang_up", sides=[side])
            stage.wait(partial(are_over, stage, side), "calls are not over")
        legs = [leg for leg in stage.judge().legs if leg.began_at >= began]
        assert len(legs) == 3 * _CALLS
        assert {leg.peer for leg in legs} == {stage.front.address}
        ended = {(leg.role, leg.kind, leg.ended_by) for leg in legs}
        assert ended == {
            ("caller", "forwarded", "us"),
            ("caller", "forwarded", "peer"),
            ("callee", "", "us"),
            ("callee", "", "peer"),
        }


def are_over(stage: FrontedStage, side: str) -> bool:
    return not stage.far.counts()[f"{side}_up"]


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


def has_another(registrar: Registrar, call_id: str) -> bool:
    return registrar.heard[-1][0] != call_id


def times_registered(node: ServerProcess) -> int:
    return node.log().count("registration registered carrier=")


def test_one_node_registers_and_another_after_its_death(stage: FrontedStage) -> None:
    """
    A registrar sees one binding, at the front. Its node drains: the other one registers. That is killed under
    load: within 15 s the first renews the same binding, and no call of its own is harmed.
    """
    with Registrar() as registrar:
        stage.a.add_carrier(
            "registered",
            f"udp:127.0.0.1:{registrar.port}",
            outbound=True,
            requires_register=True,
            register_username="u1",
            register_password="secret",
        )
        stage.wait(lambda: sum(map(times_registered, stage.nodes)), "nobody registers")
        for number in range(_DEATHS):
            let_b_register(stage)
            first, heard = registrar.heard[-1][0], len(registrar.heard)
            stage.load(_RATE, _MIX, hold_s=_HOLD_S)
            stage.carry(*stage.nodes)
            killed_at = stage.kill_b()
            assert {call_id for call_id, _ in registrar.heard[heard:]} <= {first}
            stage.wait(partial(has_another, registrar, first), "the binding is not renewed")
            took_s = time.monotonic() - killed_at
            reports.sample("registered by another node after, s", took_s)
            assert took_s < _REGISTERED_S
            progress(f"kill {number + 1} of {_DEATHS}: registered again after {took_s:.1f} s")
            stage.revive_b()
        assert {contact for _, contact in registrar.heard} == {f"<sip:u1@{stage.front.address}>"}
    assert_others_are_whole(stage.judge(), stage.refusals)


def let_b_register(stage: FrontedStage) -> None:
    """Start node a anew unless node b holds the registrations."""
    if stage.b.metric("trunkline_node_duty_held") != 1:
        before = times_registered(stage.b)
        assert stage.a.stop() == 0
        stage.start(stage.a)
        stage.wait(lambda: times_registered(stage.b) > before, "node b does not register")
