"""Mixed calls for a long time: nothing is lost, and the server uses no more at the end than at the start."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.faults import reports
from tests.faults.drift import FDS, KEPT, RSS, Drift, Sample
from tests.faults.lengths import SOAK, progress, seconds
from tests.faults.oracle import Evidence, assert_nothing_lost
from tests.faults.oracle.stage import OracleStage
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

_MIX = {"forwarded": 6, "streamed": 1, "cancelled": 1, "outbound": 2, "otp": 1, "masked": 1}
_MIB = 1 << 20
_LOOK_EACH_S = 15.0 if SOAK else 3.0
# Memory comes in arenas: what a short run adds says nothing of what a long one will.
_ARENAS_MIB = 64.0
_OWED_MIB_PER_CALL = 1e-5
# The first calls fill caches, and many at once take arenas; half as many more are needed for a slope that is
# more than what the allocator keeps or gives back.
_WARM_CALLS, _NOISE_MIB = 20_000, 8.0


@pytest.mark.long(reason="the soak in its short form")
@pytest.mark.timeout(0 if SOAK else 200)
def test_mixed_calls_leave_nothing_behind(tmp_path: Path) -> None:
    """
    Forwarded, streamed, cancelled, refused, placed, masked and OTP calls over a long time: none is lost or
    billed wrong, no port, dialog, descriptor or task is left, memory and latency stay constant.
    """
    length_s = seconds("S", short=8.0, long=1800.0)
    part_s = seconds("PART_S", short=5.0, long=300.0)
    rate = seconds("RATE", short=8.0, long=20.0)
    hold_s = (1.0, seconds("HOLD_S", short=4.0, long=28.0))
    soak = _Soak()
    with OracleStage(tmp_path, seed=20_261_122) as stage:
        stage.callees(ring_s=(0.0, 0.5), hold_s=hold_s, refuse_share=0.05)
        # What the first calls bring along (caches, pools, modules) is no growth.
        stage.load(rate, _MIX, calls=24, hold_s=(0.5, 1.0))
        stage.wait(lambda: not stage.far.counts()["placing"], "calls are not placed")
        stage.end_calls()
        soak.judge(stage)
        before = soak.drift.look(stage.server, 0)
        until = time.monotonic() + length_s
        while (now := time.monotonic()) < until:
            stage.load(rate, _MIX, hold_s=hold_s)
            soak.watch(stage, min(now + part_s, until))
            stage.end_calls()
            soak.judge(stage)
        # Transactions are kept for 32 s after their last message (RFC 3261 17), connections for a while too.
        end = Drift()
        gone = wait_until(lambda: _is_as_before(before, end.look(stage.server, soak.calls)), 2 * PATIENCE_S)
        soak.drift.samples.append(end.samples[-1])
    growth_mib = soak.drift.memory_mib_per_call(_WARM_CALLS)
    enough = soak.calls >= 1.5 * _WARM_CALLS
    slope = f"{1e5 * growth_mib:+.1f} MiB per 100,000" if enough else "too few for a slope"
    progress(f"{soak.records} calls, {slope}; {soak.drift.summary()}")
    progress(f"INVITE to ringing {_spread(soak.delays_ms)} ms, POST to 201 {_spread(soak.asked_ms)} ms")
    reports.figure(calls=soak.calls, records=soak.records, memory=slope, ringing_ms=_spread(soak.delays_ms))
    reports.figure(asked_ms=_spread(soak.asked_ms), resources=soak.drift.summary())
    assert soak.records > length_s * rate / 2
    assert gone, (before, end.samples[-1])
    if enough:
        assert growth_mib * soak.calls < _NOISE_MIB + _OWED_MIB_PER_CALL * soak.calls
    else:
        assert end.samples[-1].values[RSS] - before.values[RSS] < _ARENAS_MIB * _MIB
    third = len(soak.delays_ms) // 3
    drifted_ms = statistics.median(soak.delays_ms[-third:]) - statistics.median(soak.delays_ms[:third])
    assert drifted_ms < (50.0 if SOAK else 1000.0 * PATIENCE_S)


@dataclass(slots=True)
class _Soak:
    """
    State of a run so far.

    Attributes:
        calls, records: Calls of the far ends, and records of the server that were judged.
        delays_ms: From INVITE to ringing, of forwarded calls.
        asked_ms: From request to answer of the API, of placed calls.
    """

    drift: Drift = field(default_factory=Drift)
    calls: int = 0
    records: int = 0
    delays_ms: list[float] = field(default_factory=list)
    asked_ms: list[float] = field(default_factory=list)

    def watch(self, stage: OracleStage, until: float) -> None:
        """Look at the server again and again until then."""
        while time.monotonic() < until:
            wait_until(lambda: False, min(_LOOK_EACH_S, max(0.1, until - time.monotonic())))
            counts = stage.far.counts()
            self.calls = counts["calls"]
            self.asked_ms += counts["asked_ms"]
            seen = self.drift.look(stage.server, self.calls)
            reports.sample("memory, MiB", seen.values[RSS] / _MIB)
            if counts["asked_ms"]:
                reports.sample("POST to 201, p99, ms", _percentile(counts["asked_ms"], 0.99))
            up = f"{counts['callers_up']} callers and {counts['callees_up']} callees up"
            progress(f"{self.calls} calls, {up}; {self.drift.summary()}")

    def judge(self, stage: OracleStage) -> None:
        """Judge the calls since the last time, now that all are over."""
        evidence = stage.part()
        assert_nothing_lost(evidence)
        self.records += len(evidence.records)
        delays_ms = _delays_ms(evidence)
        self.delays_ms += delays_ms
        if delays_ms:
            reports.sample("INVITE to ringing, p99, ms", _percentile(delays_ms, 0.99))


def _is_as_before(before: Sample, now: Sample) -> bool:
    """Nothing of any call is left, and no more tasks and descriptors than idle connections explain."""
    return (
        not any(now.values[name] for name in KEPT)
        and now.values["trunkline_tasks"] <= before.values["trunkline_tasks"] + 8
        and now.values[FDS] <= before.values[FDS] + 24
    )


def _delays_ms(evidence: Evidence) -> list[float]:
    """Milliseconds from INVITE to ringing of bridged calls, in the order they were placed."""
    callers = [leg for leg in evidence.legs if leg.kind == "forwarded"]
    callers.sort(key=lambda leg: leg.began_at)
    return [1000 * (leg.rang_at - leg.began_at) for leg in callers if leg.rang_at is not None]


def _spread(values: Sequence[float]) -> str:
    """Median and 99th percentile, by thirds of the run."""
    third = max(1, len(values) // 3)
    parts = [values[place : place + third] for place in range(0, 3 * third, third)]
    return ", ".join(
        f"p50 {_percentile(part, 0.5):.0f} p99 {_percentile(part, 0.99):.0f}" for part in parts if part
    )


def _percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]
