"""Signalling through the B2BUA: both legs from INVITE to BYE, records written, no media sent."""

from __future__ import annotations

import argparse
import statistics
from typing import Any

from benchmarks.machine import TOOL_PREFIX, sample
from benchmarks.sut import NUMBER, SystemUnderTest, bare_relay
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load, Sipp, start_sipp

CLAIM = (
    "CPU per bridged call's signalling, INVITE to BYE on both legs, held 1 s, call records written, beside a "
    "relay that moves the same datagrams unread"
)
COLUMNS = {
    "what": "what",
    "calls/s": "rate",
    "calls": "calls",
    "failed": "failed",
    "CPU ms/call": "cpu_ms_per_call",
    "x floor": "times_floor",
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
    steps = []
    for rate in map(float, arguments.rates.split(",")):
        floor = _floor(sut, rate, round(rate * seconds))
        measured = step(sut, rate, round(rate * seconds))
        if floor["cpu_ms_per_call"]:
            measured["times_floor"] = round(measured["cpu_ms_per_call"] / floor["cpu_ms_per_call"], 1)
        steps += [floor, measured]
    return steps


def step(sut: SystemUnderTest, rate: float, calls: int) -> dict[str, Any]:
    """Place calls at a rate, and measure them."""
    return _calls(sut, rate, calls, "trunkline", sut.server.pid, sut.target)


def _floor(sut: SystemUnderTest, rate: float, calls: int) -> dict[str, Any]:
    """The same calls from caller to callee by way of a relay that knows nothing of SIP."""
    with bare_relay(sut.directory, 1, sink=sut.uas_port) as (pid, (port,)):
        return _calls(sut, rate, calls, "bare relay", pid, f"127.0.0.1:{port}")


def _calls(sut: SystemUnderTest, rate: float, calls: int, what: str, pid: int, target: str) -> dict[str, Any]:
    uas = callee(sut, sut.uas_port, Load(calls, rate))
    wait_until(lambda: False, 0.5)
    before = sample(pid)
    called = caller(sut, sut.uac_port, Load(calls, rate, 1000), NUMBER, target).wait(calls / rate + 60)
    used = sample(pid).since(before)
    taken = uas.stop()
    failed = calls - min(called.successful, taken.successful)
    return {
        "what": what,
        "ok": failed == 0,
        "rate": rate,
        "calls": calls,
        "failed": failed,
        "retransmissions": called.retransmissions + taken.retransmissions,
        "cpu_ms_per_call": round(1000 * used["cpu_s"] / calls, 3),
        "set_up_ms": _spread(called.set_up_ms),
        "server": used,
    }


def callee(sut: SystemUnderTest, port: int, load: Load) -> Sipp:
    """Start the far end that answers."""
    return start_sipp("uas.xml", sut.directory, port, load, prefix=TOOL_PREFIX, extra=_media_port())


def caller(sut: SystemUnderTest, port: int, load: Load, number: str, target: str | None = None) -> Sipp:
    """Start calling a number, through the server if no other target is given."""
    return start_sipp(
        "uac.xml",
        sut.directory,
        port,
        load,
        target=target or sut.target,
        number=number,
        prefix=TOOL_PREFIX,
        extra=_media_port(),
    )


def _media_port() -> list[str]:
    return ["-mp", str(free_port())]


def _spread(times_ms: tuple[float, ...]) -> dict[str, float]:
    # SIPp reads a coarse clock: expect steps of the kernel's tick, 4 ms at 250 Hz.
    if len(times_ms) < 2:
        return {}
    cuts = statistics.quantiles(times_ms, n=100)
    return {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1), "max": max(times_ms)}
