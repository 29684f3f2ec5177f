"""Calls with G.711 both ways, held: what goes in on one side comes out on the other."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks import w2_relay
from benchmarks.sut import SystemUnderTest, tools_missing
from tests.faults.lengths import SOAK, count, progress, seconds

pytestmark = pytest.mark.skipif(bool(tools_missing()), reason="needs SIPp, a C compiler and taskset")

# What we owe is added by us, and nothing is; a machine that others use adds more, and drops some.
_ADDED_MS = 5.0 if SOAK else 500.0
_LOSS_PCT = 0.0 if SOAK else 5.0


@pytest.mark.timeout(0 if SOAK else 200)
def test_held_calls_relay_every_packet(tmp_path: Path) -> None:
    """Bridged calls that are held with G.711 both ways lose no packet, and their audio arrives evenly."""
    calls = count("HELD_CALLS", short=8, long=300)
    length_s = seconds("HELD_S", short=2.0, long=600.0)
    with SystemUnderTest(tmp_path) as sut:
        floor, relay = w2_relay.run(sut, Namespace(calls=str(calls), seconds=length_s))
        rtp = relay["rtp"]
        added_ms = rtp["rtt_ms"]["p99"] - floor["rtp"]["rtt_ms"]["p99"]
        progress(
            f"{calls} calls for {length_s:.0f} s: {rtp}; {added_ms:.2f} ms more than a bare relay at p99"
        )
        assert rtp["silent_calls"] == 0
        assert rtp["loss_pct"] <= _LOSS_PCT, rtp
        assert added_ms < _ADDED_MS, (floor["rtp"], rtp)
