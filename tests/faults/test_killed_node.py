"""Two servers behind a Kamailio under load, of which one is killed, judged by the oracle."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.faults import reports
from tests.faults.lengths import SOAK, count, progress, seconds
from tests.faults.oracle.evidence import Evidence, Hook, Leg
from tests.faults.oracle.fronted_stage import FrontedStage, set_up_s
from tests.faults.oracle.nodes_stage import wait_till
from tests.faults.oracle.reconcile import CRASH
from tests.support.kamailio import needs_kamailio
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.waiting import PATIENCE_S

# `make test` installs what is missing here; a run without make goes on with the rest, and says so.
pytestmark = [
    needs_kamailio,
    pytest.mark.durable,
    pytest.mark.timeout(0),
    pytest.mark.long(reason="two servers under load, whose leases one waits out"),
]

_ROUNDS = count("NODE_KILLS", short=1, long=10)
_RATE = seconds("NODE_KILL_RATE", short=4.0, long=10.0)
_STEADY = count("NODE_KILL_CALLS_UP", short=8, long=60)
_RINGING = count("NODE_KILL_RINGING", short=6, long=30)
_MIX = {"forwarded": 4, "streamed": 2, "cancelled": 1}
_HOLD_S = (2.0, 8.0)
# Bounds of the short version are for a machine with more to do than it can.
_ADOPTED_S = 10.0 if SOAK else PATIENCE_S
_TOLD_S = 15.0 if SOAK else PATIENCE_S + 10.0
# So long parties ring that are to ring at a kill: longer than a lease and an adoption take.
_LONG_S = _ADOPTED_S + 15.0
_SET_UP_S = 2.5 if SOAK else 10.0
_SOON_S = 0.5 if SOAK else 5.0
_SILENCE_S = 1.0 if SOAK else 5.0
# So long the front still passes calls to a node that is silent.
_NOTICED_S = 2.0
# What a killed node has sent, and not yet written down as sent, is sent again.
_IN_DOUBT_S = 2.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
async def database_url(postgres: PostgresServer) -> str:
    return await postgres.url()


def test_a_killed_node_costs_its_own_calls_alone(tmp_path: Path, database_url: str) -> None:
    """
    kill -9 of a node under load: calls of the other one are whole and heard throughout, and new ones are set
    up. Those of the dead node are ended, charged and released in time, their peers get BYE or CANCEL, and
    all webhooks that it owed come in order.
    """
    with FrontedStage(tmp_path, database_url) as stage:
        for number in range(1, _ROUNDS + 1):
            if not stage.b_runs:
                stage.revive_b()
            kill_under_load(stage)
            progress(f"kill {number} of {_ROUNDS}: {stage.far.counts()}")
        evidence = stage.judge()
        refusals = stage.refusals
    assert_others_are_whole(evidence, refusals)
    for killed_at in evidence.kills:
        assert_peers_are_told(evidence, killed_at)
        assert_events_came(evidence, killed_at)


def kill_under_load(stage: FrontedStage) -> None:
    """Kill node b while calls talk, begin and ring, and wait until all that it had is over."""
    stage.callees(ring_s=(0.0, 0.5))
    stage.set_up_calls_that_stay(_STEADY)
    stage.load(_RATE, _MIX, hold_s=_HOLD_S)
    stage.carry(*stage.nodes)
    wait_till(stage.may_adopt_at - _IN_DOUBT_S)
    stage.callees(ring_s=(_LONG_S, _LONG_S))
    stage.load(20.0)
    stage.wait(lambda: ringing(stage, "b") >= _RINGING // 2, "calls do not ring")
    stage.far.ask("stop")
    wait_till(time.monotonic() + _IN_DOUBT_S)
    stage.callees(ring_s=(0.0, 0.5))
    stage.load(_RATE, _MIX, hold_s=_HOLD_S)
    killed_at = stage.kill_b()
    stage.wait(partial(is_settled, stage), "the calls of b are not ended")
    took_s = time.monotonic() - killed_at
    reports.sample("calls of the dead node ended after, s", took_s)
    assert took_s < _ADOPTED_S


def ringing(stage: FrontedStage, node: str) -> int:
    return int(stage.rows(f"SELECT count(*) FROM calls WHERE status = 'ringing' AND node = '{node}'")[0][0])


def is_settled(stage: FrontedStage) -> bool:
    """True once no call and no money of node b is open."""
    left = "SELECT 1 FROM calls WHERE node = 'b' AND ended_at IS NULL LIMIT 1"
    held = "SELECT 1 FROM reserves JOIN calls USING (call_sid) WHERE calls.node = 'b' LIMIT 1"
    return not stage.rows(left) and not stage.rows(held)


def sessions_lost(evidence: Evidence) -> set[str]:
    """The callers' dialogs that were on a node when it was killed."""
    return {str(record["sip_call_id"]) for record in evidence.records if record["hangup_cause"] == CRASH}


def assert_others_are_whole(evidence: Evidence, refusals: set[int]) -> None:
    """Calls that were not on the dead node were answered in time unless given up, and were heard."""
    lost = sessions_lost(evidence)
    callers = [leg for leg in evidence.legs if leg.role == "caller" and leg.call_id not in lost]
    failed = [leg for leg in callers if not leg.answered and leg.ended_by != "cancelled"]
    # An INVITE that the dead node had answered with 100, and that nobody has written down, goes no further.
    recorded = {record["sip_call_id"] for record in evidence.records}
    unread = [leg for leg in failed if leg.call_id not in recorded and in_hand(evidence, leg)]
    assert len(unread) <= 2 * len(evidence.kills), unread
    assert {leg.status for leg in failed if leg not in unread} <= refusals, failed
    talked = {leg.session_id for leg in callers if leg.answered and leg.kind == "forwarded"}
    heard = [leg for leg in evidence.legs if leg.session_id in talked and leg.answered and leg.dialog_s > 1.0]
    assert heard
    silence_s = max(leg.longest_silence_s for leg in heard)
    reports.sample("longest silence of other calls, s", silence_s)
    assert silence_s < _SILENCE_S
    assert_set_up_soon(evidence, [leg for leg in callers if set_up_s(leg) is not None])


def assert_set_up_soon(evidence: Evidence, callers: list[Leg]) -> None:
    """Set-ups take longer only as long as the front does not know that a node is silent."""
    hit = [leg for leg in callers if near_a_kill(evidence, leg)]
    rest = [leg for leg in callers if leg not in hit]
    for name, legs, limit_s in (("after a kill", hit, _SET_UP_S), ("else", rest, _SOON_S)):
        longest_s = max(set_up_s(leg) or 0.0 for leg in legs)
        reports.sample(f"longest set-up {name}, s", longest_s)
        assert longest_s < limit_s, name


def in_hand(evidence: Evidence, leg: Leg) -> bool:
    """True for a call that began just before a kill."""
    return any(killed_at - 0.5 < leg.began_at < killed_at + 0.05 for killed_at in evidence.kills)


def near_a_kill(evidence: Evidence, leg: Leg) -> bool:
    """True for a call that began just before a kill, or before the front noticed it."""
    return any(killed_at - 0.5 < leg.began_at < killed_at + _NOTICED_S for killed_at in evidence.kills)


def assert_peers_are_told(evidence: Evidence, killed_at: float) -> None:
    """Parties that stayed in a call of the dead node got a BYE of another one, and who rang a CANCEL."""
    lost = sessions_lost(evidence)
    sessions = {leg.session_id for leg in evidence.legs if leg.role == "caller" and leg.call_id in lost}
    until, written = killed_at + _ADOPTED_S, killed_at - _IN_DOUBT_S / 2
    told: Counter[str] = Counter()
    for leg in evidence.legs:
        if leg.session_id not in sessions or leg.ended_at is None or leg.ended_at < killed_at:
            continue
        # Who hangs up by itself meanwhile is told by nobody.
        if leg.confirmed_at is not None and leg.confirmed_at < written:
            assert leg.ended_at < until, leg
            if leg.ended_by == "peer":
                assert "Q.850;cause=41" in leg.reason, leg
                told["BYE"] += 1
        elif leg.role == "callee" and not leg.answered and leg.began_at < written:
            assert (leg.cancels, leg.ended_by) == (1, "cancelled") and leg.ended_at < until, leg
            told["CANCEL"] += 1
    reports.sample("legs told by BYE", told["BYE"])
    reports.sample("legs told by CANCEL", told["CANCEL"])
    assert told["BYE"] >= 2 and told["CANCEL"], told


def assert_events_came(evidence: Evidence, killed_at: float) -> None:
    """All that the dead node owed came in time; nothing came twice but events on their way at the kill."""
    over = {
        str(record["call_sid"])
        for record in evidence.records
        if record["hangup_cause"] == CRASH and evidence.moment(record["created_at"]) < killed_at
    }
    by_delivery: dict[str, list[Hook]] = {}
    for hook in evidence.hooks:
        by_delivery.setdefault(hook.delivery_id, []).append(hook)
    late = [hooks[0] for hooks in by_delivery.values() if hooks[0].call_sid in over]
    late = [hook for hook in late if hook.at > killed_at]
    assert late
    last_s = max(hook.at for hook in late) - killed_at
    reports.sample("last event of the dead node after, s", last_s)
    assert last_s < _TOLD_S
    twice = [hooks for hooks in by_delivery.values() if len(hooks) > 1]
    assert not [
        hooks
        for hooks in twice
        if not any(kill - _IN_DOUBT_S < hooks[0].at < kill + _IN_DOUBT_S for kill in evidence.kills)
    ], twice
