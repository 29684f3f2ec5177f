"""Calls over networks that lose, double, delay and reorder what they carry."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.faults import reports
from tests.faults.lengths import count, progress
from tests.faults.oracle import assert_nothing_lost
from tests.faults.oracle.stage import OracleStage
from tests.faults.wire import BadNetwork, Weather
from tests.support.impaired_link import Impairment

BAD = Weather(
    sip=Impairment(loss=0.1, duplicate=0.05, reorder=0.05, reorder_ms=30.0, delay_ms=5.0, jitter_ms=5.0),
    rtp=Impairment(loss=0.1, duplicate=0.05, reorder=0.05, reorder_ms=30.0, delay_ms=5.0, jitter_ms=5.0),
)
_RATE = 10.0
# A BYE or an answer is repeated after 0.5, 1.5, 3.5 and 7.5 s: so late may one side know what the other does.
_LATE_S = 12.0


@pytest.mark.long(reason="a load on a network that loses packets")
@pytest.mark.timeout(0)
def test_a_network_that_loses_a_tenth_of_everything_costs_no_call(tmp_path: Path) -> None:
    """With 10 % of SIP and RTP lost, 5 % doubled, 5 % overtaken, all calls complete, each once, paid once."""
    calls = count("LOSSY_CALLS", short=60, long=10_000)
    with (
        BadNetwork(BAD, seed=1) as network,
        OracleStage(tmp_path, far_sip_port=network.server_port, callee_sip_port=network.callee_port) as stage,
    ):
        network.connect(stage.server.sip_port, stage.far.callee_port)
        stage.callees(ring_s=(0.0, 0.2))
        stage.load(_RATE, calls=calls, hold_s=(2.0, 4.0))
        stage.wait(
            lambda: not stage.far.counts()["placing"], "calls are still placed", 60 + 2 * calls / _RATE
        )
        stage.wait(lambda: not stage.far.counts()["open"], "calls are left at the far ends")
        stage.settle()
        evidence = stage.evidence()
        evidence.apart_s = _LATE_S
        callers = [leg for leg in evidence.legs if leg.role == "caller"]
        callees = [leg for leg in evidence.legs if leg.role == "callee"]
        reports.figure(calls=len(callers), sip=str(network.sip), rtp=str(network.rtp))
        progress(f"{len(callers)} calls; SIP {network.sip}, RTP {network.rtp}")
        # One in ten thousand may be given up: seven copies of an INVITE, or their answers, can all be lost.
        lost = math.floor(calls / 10_000)
        assert sum(leg.answered for leg in callers) >= calls - lost
        assert len(callees) <= calls, "a call came to its callee twice"
        assert_nothing_lost(evidence)
        assert network.sip.lost > 0.05 * network.sip.taken
        assert network.rtp.lost > 0.05 * network.rtp.taken
