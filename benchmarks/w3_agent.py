"""Calls streamed to a WebSocket agent that sends every frame back."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks.machine import Usage, sample
from benchmarks.sut import SystemUnderTest, background, media_calls, run_rtpload
from benchmarks.w2_relay import taker
from fixtures.server_process import free_port, wait_until

CLAIM = "CPU per 100 agent streams (L16, 8 kHz, JSON) and the caller's round trip through agent and back"
COLUMNS = {
    "calls": "calls",
    "CPU % per 100": "cpu_pct_per_100",
    "CPU %": "server.cpu_pct",
    "loss %": "rtp.loss_pct",
    "RTT p50 ms": "rtp.rtt_ms.p50",
    "p99": "rtp.rtt_ms.p99",
    "p99.9": "rtp.rtt_ms.p999",
    "unmarked": "rtp.unmarked",
    "switches": "server.context_switches",
    "RSS KiB/call": "rss_kib_per_call",
}


def run(sut: SystemUnderTest, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    agent = [sys.executable, "-m", "benchmarks.load.agent_echo", "--port", str(sut.agent_port)]
    with background(agent, sut.source_root):
        wait_until(lambda: False, 1.0)
        steps = map(int, (arguments.calls or "50,100").split(","))
        return [_step(sut, calls, arguments.seconds or 10.0) for calls in steps]


def _step(sut: SystemUnderTest, calls: int, seconds: float) -> dict[str, Any]:
    load_port = free_port()
    before = sample(sut.server.pid)
    ends: list[Usage] = []
    with media_calls(sut, sut.stream_number, calls, seconds, load_port) as ports:
        report = run_rtpload(sut.directory, ports, seconds, load_port, taker(sut.server.pid, ends))
    used = ends[-1].since(ends[0])
    return {
        # A frame lost now and then is the jitter buffer at work; a dead stream is not.
        "ok": report["loss_pct"] < 1.0 and report["silent_calls"] == 0,
        "calls": calls,
        "cpu_pct_per_100": round(100 * used["cpu_pct"] / calls, 1),
        "rss_kib_per_call": round((ends[-1].rss_kib - before.rss_kib) / calls),
        "rtp": report,
        "server": used,
    }
