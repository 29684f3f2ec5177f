"""Bridged G.711: what relaying a packet costs and how long it takes, beside a relay that does only that."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks.machine import TOOL_PREFIX, Usage, sample
from benchmarks.sut import (
    LOAD,
    NUMBER,
    SystemUnderTest,
    background,
    bare_relay,
    media_calls,
    rtpload_binary,
    run_rtpload,
)
from tests.support.ports import free_port
from tests.support.sipp_run import Load, start_sipp

CLAIM = (
    "CPU per relayed packet of bridged G.711 calls and round trip, beside the bare relay of the same minutes"
)
COLUMNS = {
    "what": "what",
    "calls": "calls",
    "CPU us/packet": "cpu_us_per_packet",
    "x floor": "times_floor",
    "CPU %": "server.cpu_pct",
    "loss %": "rtp.loss_pct",
    "RTT p50 ms": "rtp.rtt_ms.p50",
    "p99": "rtp.rtt_ms.p99",
    "p99.9": "rtp.rtt_ms.p999",
    "switches": "server.context_switches",
    "RSS KiB/call": "rss_kib_per_call",
}


def run(sut: SystemUnderTest, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    steps = []
    for calls in map(int, (arguments.calls or "100,200").split(",")):
        floor = _floor(sut, calls, arguments.seconds or 10.0)
        relay = _relay(sut, calls, arguments.seconds or 10.0)
        if floor["cpu_us_per_packet"]:
            relay["times_floor"] = round(relay["cpu_us_per_packet"] / floor["cpu_us_per_packet"], 2)
        steps += [floor, relay]
    return steps


def _floor(sut: SystemUnderTest, calls: int, seconds: float) -> dict[str, Any]:
    with bare_relay(sut.directory, calls) as (pid, ports):
        return _measure("bare relay", sut, pid, ports, seconds, free_port())


def _relay(sut: SystemUnderTest, calls: int, seconds: float) -> dict[str, Any]:
    echo_port, load_port = free_port(), free_port()
    base_kib = sample(sut.server.pid).rss_kib
    echo = [rtpload_binary(sut.directory), "echo", "--listen", str(echo_port)]
    with background(echo, sut.directory):
        uas = start_sipp(
            str(LOAD / "uas_media.xml"),
            sut.directory,
            sut.uas_port,
            Load(calls),
            extra=["-key", "echo_port", str(echo_port)],
            prefix=TOOL_PREFIX,
        )
        with media_calls(sut, NUMBER, calls, seconds, load_port) as ports:
            step = _measure("trunkline", sut, sut.server.pid, ports, seconds, load_port)
        uas.stop()
    step["rss_kib_per_call"] = round((step["rss_kib"] - base_kib) / calls)
    return step


def _measure(
    what: str, sut: SystemUnderTest, pid: int, ports: list[int], seconds: float, load_port: int
) -> dict[str, Any]:
    ends: list[Usage] = []
    report = run_rtpload(sut.directory, ports, seconds, load_port, taker(pid, ends))
    used = ends[-1].since(ends[0])
    packets = report["sent"] + report["returned"]
    return {
        "what": what,
        "ok": report["loss_pct"] < 0.1 and report["silent_calls"] == 0,
        "calls": len(ports),
        "cpu_us_per_packet": round(1e6 * used["cpu_s"] / packets, 2) if packets else 0.0,
        "rss_kib": ends[-1].rss_kib,
        "rtp": report,
        "server": used,
    }


def taker(pid: int, into: list[Usage]) -> Callable[[bool], None]:
    """A hook for `run_rtpload` that samples the process at both ends of the window."""
    return lambda _: into.append(sample(pid))
