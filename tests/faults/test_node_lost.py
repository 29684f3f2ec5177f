"""Calls, limits, keys and recordings of two servers, of which one is killed, stopped or has a twin."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.faults import reports
from tests.faults.lengths import SOAK, count, progress, seconds
from tests.faults.oracle.evidence import Evidence, Leg
from tests.faults.oracle.nodes_stage import NodesStage, wait_till
from tests.faults.pair import Pair
from tests.faults.test_nodes_apart import calls_on_b
from tests.support.server_process import ServerFailed, ServerProcess, wait_until
from tests.support.waiting import PATIENCE_S

pytestmark = [
    pytest.mark.durable,
    pytest.mark.timeout(0),
    pytest.mark.long(reason="two servers in processes of their own, whose leases one waits out"),
]

_CALLS_AT_ONCE, _CPS, _OF_TRUNK = 10, 5, 4
_HAMMERED_S = seconds("HAMMERED_S", short=3.0, long=20.0)
_CLIENTS = 4
_KEYS = count("KEYS_HELD", short=24, long=200)
_COMMIT_S = 0.3
_CALLS = count("NODES_CALLS", short=5, long=50)
_STILL_S = seconds("STOOD_STILL_S", short=12.0, long=20.0)
# All that a node writes about calls; their webhooks may be on their way.
_WRITTEN = (
    "SELECT * FROM calls ORDER BY call_sid",
    "SELECT * FROM ledger ORDER BY 1",
    "SELECT * FROM wallets ORDER BY 1",
    "SELECT * FROM reserves ORDER BY 1",
)
_AWAY_S = seconds("STORE_AWAY_S", short=3.0, long=60.0)
# What a dead node had is free after its lease and an adoption; the short bound is for a busy machine.
_FREE_S = 10.0 if SOAK else PATIENCE_S
# Calls are refused by the clock of the database and seen by that of the far ends, on the same machine.
_JITTER_S = 1.0


@pytest.fixture(autouse=True)
def whole(pair: Pair) -> Iterator[None]:
    """Both nodes run before and after a test, and no call is lost."""
    yield
    if not pair.stage.b_runs:
        pair.stage.revive_b()
    pair.stage.judge()


def callee(stage: NodesStage, user: str) -> str:
    return f"sip:{user}@127.0.0.1:{stage.far.callee_port}"


@contextmanager
def no_limits_afterwards(stage: NodesStage) -> Iterator[None]:
    """Lift the limits that a block sets."""
    try:
        yield
    finally:
        set_limits(stage, calls=5000, cps=1000)


def set_limits(stage: NodesStage, *, calls: int, cps: int, of_trunk: int | None = None) -> None:
    """Limit the account and the trunk of its callees, and wait until both nodes go by it."""
    account = stage.account.account_sid
    limited = ("--max-calls", str(calls), "--max-cps", str(cps))
    stage.a.command("accounts", "update", "--account", account, *limited)
    carrier = stage.rows("SELECT carrier_sid FROM carriers WHERE name = 'callees'")[0][0]
    value = f"max_concurrent_calls={json.dumps(of_trunk)}"
    stage.a.command("carriers", "update", "--carrier", carrier, "--set", value)
    name = "trunkline_directory_revision"
    for node in (node for node in stage.nodes if node is stage.a or stage.b_runs):
        newest = stage.rows("SELECT max(revision) FROM directory_revision")[0][0]
        stage.wait(partial(lambda node, newest: node.metric(name) >= newest, node, newest), "no change")


def hammer(stage: NodesStage, user: str, length_s: int, refusal: int) -> None:
    """Ask both nodes for calls, again and again and all at once, for so long and until they refuse some."""
    over = threading.Event()
    found: Counter[int] = Counter()

    def run(node: ServerProcess) -> None:
        while not over.wait(0.02):
            found[stage.place(node, callee(stage, user), length_s=length_s).status] += 1

    with ThreadPoolExecutor(_CLIENTS) as pool:
        asking = [pool.submit(run, stage.nodes[number % 2]) for number in range(_CLIENTS)]
        wait_till(time.monotonic() + _HAMMERED_S)
        # A busy machine needs longer until it asks for more than is allowed.
        refused = wait_until(lambda: found[refusal], PATIENCE_S)
        over.set()
        for asked in asking:
            asked.result()
    assert refused, found
    stage.wait(lambda: not stage.rows("SELECT 1 FROM reserves LIMIT 1"), "calls do not end")
    progress(f"{user}: {dict(found)}")
    assert set(found) <= {201, 429, 503}, found


def legs_of(evidence: Evidence, user: str) -> list[Leg]:
    return [leg for leg in evidence.legs if leg.role == "callee" and leg.number == user]


def most_at_once(legs: Sequence[Leg]) -> int:
    """The greatest number of legs at the same moment."""
    changes = sorted(
        [(leg.began_at, 1) for leg in legs] + [(leg.ended_at, -1) for leg in legs if leg.ended_at is not None]
    )
    up = most = 0
    for _, change in changes:
        up += change
        most = max(most, up)
    return most


def most_per_second(legs: Sequence[Leg]) -> float:
    """The greatest rate over any stretch of some seconds, beyond what a bucket holds at its begin."""
    began = sorted(leg.began_at for leg in legs)
    return max(
        (last - first + 1 - _CPS) / (began[last] - began[first] + _JITTER_S)
        for first in range(len(began))
        for last in range(first + _CPS, len(began))
    )


def test_limits_hold_over_both_nodes_and_come_back(pair: Pair) -> None:
    """
    Both nodes are asked for far more calls than an account and a trunk may have: at no moment more are up,
    nor more begun in a second; after kill -9 of a node the whole room is there again, and nothing is left.
    """
    stage = pair.stage
    stage.callees(ring_s=(0.0, 0.0))
    with no_limits_afterwards(stage):
        set_limits(stage, calls=5000, cps=_CPS)
        hammer(stage, "rate", 1, 429)
        set_limits(stage, calls=_CALLS_AT_ONCE, cps=1000)
        hammer(stage, "room", 2, 503)
        set_limits(stage, calls=5000, cps=1000, of_trunk=_OF_TRUNK)
        hammer(stage, "trunk", 1, 503)
        set_limits(stage, calls=_OF_TRUNK, cps=1000, of_trunk=_OF_TRUNK)
        room_comes_back(stage, _OF_TRUNK)
    evidence = pair.stage.judge()
    for user, most in (("room", _CALLS_AT_ONCE), ("trunk", _OF_TRUNK)):
        found = most_at_once(legs_of(evidence, user))
        reports.sample(f"most calls at once, {user}", found)
        # A call that ends slowly has its place for longer than its far end sees it.
        assert found == most if SOAK else 0 < found <= most
    rate = most_per_second(legs_of(evidence, "rate"))
    reports.sample("most calls per second", rate)
    assert rate <= _CPS
    assert not stage.rows("SELECT 1 FROM reserves") and not stage.rows("SELECT 1 FROM trunk_legs")


def room_comes_back(stage: NodesStage, room: int) -> None:
    """Use all the room, half of it at node b, kill that, and use the room again at node a."""
    to = callee(stage, "killed")
    placed = [stage.place(stage.nodes[number % 2], to).status for number in range(room)]
    assert placed == [201] * room
    refused = stage.place(stage.a, to)
    assert refused.status == 503 and "limit" in refused.body["error"]["message"]
    killed_at = stage.kill_b()
    again = 0
    while again < room // 2:
        assert time.monotonic() < killed_at + _FREE_S, f"{again} of {room // 2} places are free"
        if stage.place(stage.a, to).status == 201:
            again += 1
        else:
            wait_till(time.monotonic() + 0.1)
    reports.sample("all room again after, s", time.monotonic() - killed_at)
    assert stage.place(stage.a, to).status == 503, "there is more room than before"


def test_the_keys_of_a_killed_node_are_answered_by_another(pair: Pair) -> None:
    """
    A node is killed in the middle of requests with an `Idempotency-Key`: repeated at another one, each is
    answered as it would have been, or carried out now, within 10 s, and has one effect.
    """
    stage = pair.stage
    stage.callees(ring_s=(0.0, 0.0))
    wait_till(stage.may_adopt_at)
    pair.proxy.commit_s = _COMMIT_S
    users = [f"key{number}-{len(stage.placed)}" for number in range(_KEYS)]
    statuses: list[int] = []

    def ask(user: str) -> int:
        try:
            return stage.place(stage.b, callee(stage, user), length_s=600, Idempotency_Key=user).status
        except OSError:
            return 0  # It was killed.

    try:
        with ThreadPoolExecutor(_KEYS) as pool:
            asking = []
            for user in users:
                asking.append(pool.submit(ask, user))
                wait_till(time.monotonic() + 3 * _COMMIT_S / _KEYS)
            killed_at = stage.kill_b()
            statuses = [asked.result() for asked in asking]
    finally:
        pair.proxy.commit_s = 0.0
    held = "SELECT effect IS NULL, count(*) FROM idempotency_keys WHERE status IS NULL GROUP BY 1"
    progress(f"answered {Counter(statuses)}, held without an effect or with one: {stage.rows(held)}")
    assert 0 in statuses, "no request was in the middle"
    first = {user: repeated(stage, user) for user in users}
    assert 409 in first.values(), "no key was held"
    for user in users:
        status = first[user]
        while status == 409:
            assert time.monotonic() < killed_at + _FREE_S, "a key is held"
            wait_till(time.monotonic() + 0.1)
            status = repeated(stage, user)
        assert status == 201, user
    reports.sample("all keys answered after, s", time.monotonic() - killed_at)
    records = stage.pages("/v1/calls")
    made = Counter(str(record["to"]) for record in records)
    assert {user: times for user in users if (times := made[callee(stage, user)]) != 1} == {}


def test_a_node_that_stood_still_ends(pair: Pair) -> None:
    """
    A process is stopped for longer than its lease, with calls up and new ones coming: it is adopted once.
    Continued it writes nothing, takes no call, and ends with a status that says so.
    """
    stage = pair.stage
    calls_on_b(stage, _CALLS)
    adopted = stage.a.metric("trunkline_node_adoptions_total")
    stopped_at = stage.stop_b()
    stage.load(5.0, calls=_CALLS, hold_s=(1.0, 2.0))
    process = stage.b.process
    assert process is not None
    try:
        stage.wait(lambda: not stage.rows("SELECT 1 FROM nodes WHERE node = 'b'"), "b is not adopted")
        stage.wait(lambda: not stage.rows("SELECT 1 FROM reserves"), "the calls of b are not ended")
        reports.sample("calls of a node that stands still ended after, s", time.monotonic() - stopped_at)
        wait_till(stopped_at + _STILL_S)
        written = [stage.rows(statement) for statement in _WRITTEN]
    finally:
        process.send_signal(signal.SIGCONT)
    assert process.wait(PATIENCE_S) == 1
    assert "another node has taken over the calls of this one" in stage.b.log()
    assert [stage.rows(statement) for statement in _WRITTEN] == written
    assert stage.a.metric("trunkline_node_adoptions_total") == adopted + 1


def test_a_node_whose_name_is_taken_does_not_start(pair: Pair, tmp_path: Path) -> None:
    """A second server with the node of a living one ends with a reason, and touches none of its calls."""
    stage = pair.stage
    up = calls_on_b(stage, _CALLS)
    twin = ServerProcess(tmp_path / "twin", environment={**stage.shared, "TRUNKLINE_NODE": "b"})
    with pytest.raises(ServerFailed, match="node b runs on this database already"):
        twin.start()
    assert stage.active() == up and stage.far.up() == _CALLS
    causes = {record["call_sid"]: record["hangup_cause"] for record in stage.judge().records}
    assert {causes[call_sid] for call_sid in up} == {"NORMAL_CLEARING"}


def repeated(stage: NodesStage, user: str) -> int:
    return stage.place(stage.a, callee(stage, user), length_s=600, Idempotency_Key=user).status


def test_a_recording_outlives_its_node(pair: Pair) -> None:
    """
    Recordings of a node that is killed are heard in whole and in part, linked to and deleted through another;
    while the store is away calls go on and end as ever, and their recordings follow.
    """
    stage = pair.stage
    stage.callees(ring_s=(0.0, 0.0))
    lost, kept = [record_on_b(pair) for _ in range(2)]
    assert wait_until(lambda: {lost, kept} <= stored(pair), PATIENCE_S)
    whole = heard(stage, lost)
    stage.kill_b()
    assert heard(stage, lost) == whole
    part = stage.ask(stage.a, "GET", link(stage, lost), key="", Range="bytes=44-99")
    assert (part.status, part.raw) == (206, whole[44:100])
    assert stage.ask(stage.a, "DELETE", f"/v1/calls/{lost}/recording").status == 204
    # Until its node is adopted nobody knows if it has made another since.
    shown = partial(stage.ask, stage.a, "GET", f"/v1/calls/{lost}/recording")
    assert shown().status in (404, 503)
    stage.wait(lambda: shown().status == 404, "a deleted recording is shown")
    assert lost not in stored(pair) and kept in stored(pair)
    stage.revive_b()
    follow_uploads(pair)


def follow_uploads(pair: Pair) -> None:
    """Record calls on both nodes while the store is away, and find them in it afterwards."""
    stage = pair.stage
    pair.s3.stop()
    try:
        until = time.monotonic() + _AWAY_S
        made = [record_on_b(pair)]
        while time.monotonic() < until:
            made.append(record_on_b(pair))
        assert not stored(pair) & set(made)
        assert heard(stage, made[0], stage.b)
    finally:
        pair.s3.start()
    back_at = time.monotonic()
    stage.wait(lambda: set(made) <= stored(pair), "uploads do not follow")
    reports.sample("uploads followed after, s", time.monotonic() - back_at)
    assert heard(stage, made[-1])


def record_on_b(pair: Pair) -> str:
    """Record a call of node b to its end."""
    stage = pair.stage
    placed = stage.place(stage.b, callee(stage, "recorded"), length_s=1, record=True)
    assert placed.status == 201, placed
    call_sid = str(placed.body["data"]["call_sid"])

    def is_over() -> bool:
        call = stage.api("GET", stage.path_of(call_sid))
        assert call["status"] != "failed", call
        return bool(call["recording_status"] == "completed" and call["ended_at"])

    stage.wait(is_over, "the recording does not end")
    return call_sid


def link(stage: NodesStage, call_sid: str) -> str:
    """Path and query of a link to a recording, as node a makes it."""
    url = str(stage.api("GET", f"/v1/calls/{call_sid}/recording")["url"])
    return url[url.index("/recordings/") :]


def heard(stage: NodesStage, call_sid: str, node: ServerProcess | None = None) -> bytes:
    """The recording of a call, by its link."""
    found = stage.ask(node or stage.a, "GET", link(stage, call_sid), key="")
    assert (found.status, found.raw[:4]) == (200, b"RIFF"), found
    return found.raw


def stored(pair: Pair) -> set[str]:
    return {name.removesuffix(".wav") for name in pair.s3.keys(pair.bucket)}
