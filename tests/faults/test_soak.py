"""Mixed calls for a long time: nothing is lost, and the server uses no more at the end than at the start."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
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
# From this many calls on the slope says something, but for what the allocator keeps or gives back.
_ENOUGH, _NOISE_MIB = 20_000, 8.0


@pytest.mark.long(reason="the soak in its short form")
@pytest.mark.timeout(0 if SOAK else 200)
def test_mixed_calls_leave_nothing_behind(tmp_path: Path) -> None:
    """
    Forwarded, streamed, cancelled, refused, placed, masked and OTP calls over a long time: none is lost or
    billed wrong, no port, dialog, descriptor or task is left, memory and latency stay constant.
    """
    length_s = seconds("S", short=8.0, long=1800.0)
    rate = seconds("RATE", short=8.0, long=20.0)
    drift = Drift()
    asked_ms: list[float] = []
    with OracleStage(tmp_path, seed=20_261_122) as stage:
        hold_s = (2.0, 28.0) if SOAK else (1.0, 4.0)
        stage.callees(ring_s=(0.0, 0.5), hold_s=hold_s, refuse_share=0.05)
        # What the first calls bring along (caches, pools, modules) is no growth.
        stage.load(rate, _MIX, calls=24, hold_s=(0.5, 1.0))
        stage.wait(lambda: not stage.far.counts()["placing"], "calls are not placed")
        stage.end_calls()
        before = drift.look(stage.server, 0)
        stage.load(rate, _MIX, hold_s=hold_s)
        until = time.monotonic() + length_s
        while time.monotonic() < until:
            wait_until(lambda: False, min(_LOOK_EACH_S, max(0.1, until - time.monotonic())))
            counts = stage.far.counts()
            asked_ms += counts["asked_ms"]
            seen = drift.look(stage.server, counts["calls"])
            reports.sample("memory, MiB", seen.values[RSS] / _MIB)
            if counts["asked_ms"]:
                reports.sample("POST to 201, p99, ms", _percentile(counts["asked_ms"], 0.99))
            up = f"{counts['callers_up']} callers and {counts['callees_up']} callees up"
            progress(f"{counts['calls']} calls, {up}; {drift.summary()}")
        stage.end_calls()
        calls = drift.samples[-1].calls
        # Transactions are kept for 32 s after their last message (RFC 3261 17), connections for a while too.
        end = Drift()
        gone = wait_until(lambda: _is_as_before(before, end.look(stage.server, calls)), 2 * PATIENCE_S)
        after = end.samples[-1]
        drift.samples.append(after)
        evidence = stage.evidence()
        growth_mib = drift.memory_mib_per_call()
        delays_ms = _delays_ms(evidence)
        slope = f"{1e5 * growth_mib:+.1f} MiB per 100,000" if calls >= _ENOUGH else "too few for a slope"
        progress(f"{len(evidence.records)} calls, {slope}; {drift.summary()}")
        progress(f"INVITE to ringing {_spread(delays_ms)} ms, POST to 201 {_spread(asked_ms)} ms")
        reports.figure(
            calls=calls, records=len(evidence.records), memory=slope, ringing_ms=_spread(delays_ms)
        )
        reports.figure(asked_ms=_spread(asked_ms), resources=drift.summary())
        assert_nothing_lost(evidence)
        assert len(evidence.records) > length_s * rate / 2
        assert gone, (before, after)
        allowed_mib = _ARENAS_MIB + _OWED_MIB_PER_CALL * calls
        assert after.values[RSS] - before.values[RSS] < allowed_mib * _MIB
        assert calls < _ENOUGH or growth_mib * calls < _NOISE_MIB + _OWED_MIB_PER_CALL * calls
        third = len(delays_ms) // 3
        drifted_ms = statistics.median(delays_ms[-third:]) - statistics.median(delays_ms[:third])
        assert drifted_ms < (50.0 if SOAK else 1000.0 * PATIENCE_S)


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
