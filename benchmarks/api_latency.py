"""The REST API: from a POST to its INVITE on the wire, and how often a core tells a call's state."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from benchmarks.machine import TOOL_PREFIX, sample
from benchmarks.sut import NUMBER, SystemUnderTest
from tests.support.server_process import ServerFailed, wait_until

CLAIM = "from POST /v1/calls to the INVITE on the wire, calls answered and held 1 s; GET of a call's state"
COLUMNS = {
    "request": "what",
    "per s": "rate",
    "calls": "calls",
    "failed": "failed",
    "INVITE p50 ms": "invite_ms.p50",
    "p99": "invite_ms.p99",
    "max": "invite_ms.max",
    "answer p50 ms": "answer_ms.p50",
    "p99 ": "answer_ms.p99",
    "CPU ms each": "cpu_ms_each",
    "CPU %": "server.cpu_pct",
    "tool late ms": "late_ms",
}


def run(sut: SystemUnderTest, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    seconds = arguments.seconds or 15.0
    rates = [float(rate) for rate in arguments.api_rates.split(",")]
    load = Load(sut)
    load.calls(20.0, 3.0, "warm-up")  # The first calls fill caches and pools; they are not counted.
    steps = [load.calls(rate, seconds, "POST") for rate in rates]
    steps += [load.calls(rate, seconds, "POST with Idempotency-Key", "--keys") for rate in rates]
    steps.append(load.status(seconds / 2, "GET, call up"))
    steps.append(load.status(seconds / 2, "GET, call over", "--ended"))
    return steps


class Load:
    """Runs the tool against one server; no number is called twice."""

    def __init__(self, sut: SystemUnderTest) -> None:
        self._sut = sut
        self._next = 0

    def calls(self, rate: float, seconds: float, what: str, *options: str) -> dict[str, Any]:
        """Place calls at a rate."""
        count = round(rate * seconds)
        report, used = self._tool("calls", "--rate", str(rate), "--seconds", str(seconds), *options)
        self._next += count
        failed = report["refused"] + report["lost"]
        return {
            "ok": failed == 0,
            "what": what,
            "rate": rate,
            "failed": failed,
            "cpu_ms_each": round(1000 * used["cpu_s"] / count, 2),
            "server": used,
            **report,
        }

    def status(self, seconds: float, what: str, *options: str) -> dict[str, Any]:
        """Ask for a call's state as fast as it is answered."""
        report, used = self._tool("status", "--seconds", str(seconds), *options)
        self._next += 1
        return {
            "ok": True,
            "what": what,
            "rate": report["per_second"],
            "server": used,
            "cpu_ms_each": round(1000 * used["cpu_s"] / report["requests"], 3),
            **report,
        }

    def _tool(self, *words: str) -> tuple[dict[str, Any], dict[str, Any]]:
        sut = self._sut
        command = [sys.executable, "-m", "benchmarks.load.api_load", *words]
        command += ["--http-port", str(sut.server.http_port), "--sip-port", str(sut.uas_port)]
        command += ["--key", sut.account.api_key, "--number", NUMBER, "--first", str(self._next)]
        wait_until(lambda: False, 0.5)
        before = sample(sut.server.pid)
        done = subprocess.run(
            [*TOOL_PREFIX, *command], cwd=sut.source_root, capture_output=True, text=True, check=False
        )
        used = sample(sut.server.pid).since(before)
        if done.returncode != 0:
            raise ServerFailed(f"the load tool ended with {done.returncode}:\n{done.stderr}")
        report: dict[str, Any] = json.loads(done.stdout)
        return report, used
