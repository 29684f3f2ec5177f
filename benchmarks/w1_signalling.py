"""Signalling through the B2BUA: both legs from INVITE to BYE, records written, no media sent."""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from typing import Any

from benchmarks.machine import TOOL_PREFIX, sample
from benchmarks.sut import NUMBER, SystemUnderTest
from fixtures.server_process import free_port, wait_until
from fixtures.sipp_run import Load, start_sipp

CLAIM = "CPU per bridged call's signalling, INVITE to BYE on both legs, held 1 s, call records written"
COLUMNS = {
    "calls/s": "rate",
    "calls": "calls",
    "failed": "failed",
    "CPU ms/call": "cpu_ms_per_call",
    "CPU %": "server.cpu_pct",
    "set-up p50 ms": "set_up_ms.p50",
    "p99": "set_up_ms.p99",
    "max": "set_up_ms.max",
    "repeated": "retransmissions",
    "RSS MiB": "server.rss_mib",
}


def run(sut: SystemUnderTest, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    seconds = arguments.seconds or 15.0
    step(sut, 20, 40)  # The first calls fill caches and pools; they are not counted.
    return [step(sut, rate, round(rate * seconds)) for rate in map(float, arguments.rates.split(","))]


def step(sut: SystemUnderTest, rate: float, calls: int) -> dict[str, Any]:
    """Have a number of calls made at a rate, and measure them."""
    load = Load(calls, rate, 0)
    uas = start_sipp(
        "uas.xml", sut.directory, sut.uas_port, load, prefix=TOOL_PREFIX, extra=["-mp", str(free_port())]
    )
    wait_until(lambda: False, 0.5)
    before = sample(sut.server.pid)
    uac = start_sipp(
        "uac.xml",
        sut.directory,
        sut.uac_port,
        replace(load, pause_ms=1000),
        target=sut.target,
        number=NUMBER,
        prefix=TOOL_PREFIX,
        extra=["-mp", str(free_port())],
    )
    caller = uac.wait(calls / rate + 60)
    used = sample(sut.server.pid).since(before)
    callee = uas.stop()
    failed = calls - min(caller.successful, callee.successful)
    return {
        "ok": failed == 0,
        "rate": rate,
        "calls": calls,
        "failed": failed,
        "retransmissions": caller.retransmissions + callee.retransmissions,
        "cpu_ms_per_call": round(1000 * used["cpu_s"] / calls, 3),
        "set_up_ms": _spread(caller.set_up_ms),
        "server": used,
    }


def _spread(times_ms: tuple[float, ...]) -> dict[str, float]:
    # SIPp reads a coarse clock: expect steps of the kernel's tick, 4 ms at 250 Hz.
    if len(times_ms) < 2:
        return {}
    cuts = statistics.quantiles(times_ms, n=100)
    return {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1), "max": max(times_ms)}
