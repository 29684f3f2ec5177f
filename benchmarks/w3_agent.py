"""Calls streamed to a WebSocket agent that sends every frame back."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

from benchmarks.machine import SUT_PREFIX, Usage, sample
from benchmarks.sut import QUIET_S, SystemUnderTest, background, media_calls, run_rtpload, tool_binary
from benchmarks.w2_relay import taker
from tests.support.ports import free_port, port_range
from tests.support.server_process import wait_until
from tests.support.tls_server import CERTIFICATE

CLAIM = (
    "CPU per 100 agent streams (L16, 8 kHz, JSON) and the caller's round trip through agent and back, beside "
    "one native thread that speaks RTP and WebSocket and does nothing else"
)
COLUMNS = {
    "what": "what",
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


# The echo's certificate, which the server trusts in place of the system's authorities.
ENVIRONMENT = {"SSL_CERT_FILE": CERTIFICATE}
_TLS_NUMBER = "+918047000099"

# Wake-ups of the native bridge: each time something comes, or on a grid that adds up to a millisecond.
GRIDS_US = (0, 1000)


def run(sut: SystemUnderTest, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    agent = [sys.executable, "-m", "benchmarks.load.agent_echo", "--port", str(sut.agent_port)]
    tls_port = free_port()
    agent += ["--tls-port", str(tls_port)]
    secure = {"target": "media_stream", "stream_url": f"wss://127.0.0.1:{tls_port}/"}
    sut.server.add_number(sut.account, _TLS_NUMBER, secure)
    steps = []
    with background(agent, sut.source_root):
        wait_until(lambda: False, 1.0)
        for calls in map(int, (arguments.calls or "50,100").split(",")):
            seconds = arguments.seconds or 10.0
            steps += [floor(sut, calls, seconds, grid_us) for grid_us in GRIDS_US]
            steps.append(_trunkline("ws", sut, sut.stream_number, calls, seconds))
            steps.append(_trunkline("wss", sut, _TLS_NUMBER, calls, seconds))
    return steps


def floor(sut: SystemUnderTest, calls: int, seconds: float, grid_us: int) -> dict[str, Any]:
    near, _ = port_range(2 * calls)
    bridge = [*SUT_PREFIX, tool_binary(sut.directory, "agent_bridge"), "--near", str(near)]
    bridge += ["--agent", str(sut.agent_port), "--calls", str(calls), "--grid-us", str(grid_us)]
    process = subprocess.Popen(bridge, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: process.poll() is not None, 1.0)
        ports = [near + 2 * index for index in range(calls)]
        what = f"native, {grid_us / 1000:g} ms grid" if grid_us else "native bridge"
        return _measure(what, sut, process.pid, ports, seconds, free_port())
    finally:
        process.terminate()
        process.wait()


def _trunkline(what: str, sut: SystemUnderTest, number: str, calls: int, seconds: float) -> dict[str, Any]:
    load_port = free_port()
    before = sample(sut.server.pid)
    with media_calls(sut, number, calls, seconds + QUIET_S, load_port) as ports:
        step = _measure(what, sut, sut.server.pid, ports, seconds, load_port)
    step["rss_kib_per_call"] = round((step["rss_kib"] - before.rss_kib) / calls)
    return step


def _measure(
    what: str, sut: SystemUnderTest, pid: int, ports: list[int], seconds: float, load_port: int
) -> dict[str, Any]:
    ends: list[Usage] = []
    report = run_rtpload(sut.directory, ports, seconds, load_port, taker(pid, ends), QUIET_S)
    used = ends[-1].since(ends[0])
    return {
        "what": what,
        # A frame lost now and then is the jitter buffer at work; a dead stream is not.
        "ok": report["loss_pct"] < 1.0 and report["silent_calls"] == 0,
        "calls": len(ports),
        "cpu_pct_per_100": round(100 * used["cpu_pct"] / len(ports), 1),
        "rss_kib": ends[-1].rss_kib,
        "rtp": report,
        "server": used,
    }
