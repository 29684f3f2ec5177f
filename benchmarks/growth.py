"""Growth: what a call costs, and what it holds in memory, with ten to a thousand others up."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks.campaigns import Prober
from benchmarks.machine import sample
from benchmarks.sut import SystemUnderTest
from benchmarks.w1_signalling import callee, caller, step
from tests.support.ports import free_port
from tests.support.server_process import ServerFailed, wait_until
from tests.support.sipp_run import Load, Sipp

CLAIM = "CPU per bridged call at a fixed rate, and memory of a call, while many others are up; no media sent"
COLUMNS = {
    "calls up": "up",
    "calls/s": "rate",
    "calls": "calls",
    "failed": "failed",
    "CPU ms/call": "cpu_ms_per_call",
    "idle CPU %": "idle_cpu_pct",
    "KiB/call up": "kib_per_call",
    "set-up p50 ms": "set_up_ms.p50",
    "p99": "set_up_ms.p99",
    "loop p50 ms": "health_ms.p50",
    "p99 ": "health_ms.p99",
    "RSS MiB": "server.rss_mib",
}
ENVIRONMENT = {"TRUNKLINE_MEDIA_TIMEOUT_S": "0", "TRUNKLINE_DRAIN_S": "0"}
"""Calls that send nothing are to stay up, and need not be waited for in the end."""

_HELD_NUMBER = "+918047000003"
_ASKED_EVERY_S = 0.05
_UP_PER_S = 40.0
_HELD_MS = 3_600_000
_MANY = 100
_SETTLED_S = 34.0


def run(sut: SystemUnderTest, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    seconds, steps = arguments.seconds or 10.0, []
    counts = sorted(map(int, arguments.up.split(",")))
    step(sut, 20, 60)  # The first calls fill caches and pools; they are not counted.
    with held_calls(sut, counts[-1]) as held:
        empty_kib = sample(sut.server.pid).rss_kib
        for up in counts:
            held.grow(up)
            held_kib = sample(sut.server.pid).rss_kib - empty_kib
            measured = _measure(sut, seconds, arguments.growth_rate)
            steps.append({"up": up, **measured, "kib_per_call": round(held_kib / up, 1)})
            # What the measured calls left is not the held calls': those that come now are counted from here.
            empty_kib = sample(sut.server.pid).rss_kib - held_kib
    return steps


def _measure(sut: SystemUnderTest, seconds: float, rate: float) -> dict[str, Any]:
    """Calls at a rate beside those that are up, whose own cost is measured first and taken off."""
    prober = Prober(sut.server.http_port, _ASKED_EVERY_S)
    prober.start()
    before = sample(sut.server.pid)
    wait_until(lambda: False, max(2.0, seconds / 2))
    idle = sample(sut.server.pid).since(before)
    measured = step(sut, rate, round(rate * seconds))
    used = measured["server"]
    own_s = used["cpu_s"] - idle["cpu_s"] / idle["wall_s"] * used["wall_s"]
    return {
        **measured,
        "cpu_ms_per_call": round(1000 * own_s / measured["calls"], 2),
        "idle_cpu_pct": idle["cpu_pct"],
        "health_ms": prober.stop(),
    }


class HeldCalls:
    """Calls that stay up, between trunks of their own."""

    def __init__(self, sut: SystemUnderTest, running: ExitStack) -> None:
        self._sut = sut
        self._running = running
        self._up = 0

    def grow(self, up: int, per_s: float = _UP_PER_S) -> None:
        """Bring calls up until there are so many, `per_s` in a second."""
        more, port = up - self._up, free_port()
        self._up = up
        self._sut.server.add_carrier(f"held-{up}", f"udp:127.0.0.1:{port}", inbound=True)
        sipp = caller(self._sut, port, Load(more, per_s, _HELD_MS), _HELD_NUMBER)
        self._running.callback(sipp.kill)
        if not wait_until(lambda: self._reached(sipp), more / per_s + 30):
            raise ServerFailed(f"{up} calls did not come up:\n{sipp.stop().errors}")
        # What their set-up leaves for a while, such as transactions, is not theirs while they are up.
        wait_until(lambda: False, _SETTLED_S if up >= _MANY else 2.0)

    def _reached(self, sipp: Sipp) -> bool:
        if not sipp.running:
            raise ServerFailed(f"calls that were to stay up are over:\n{sipp.stop().errors}")
        return self._sut.server.metric("trunkline_calls_active") >= self._up


@contextmanager
def held_calls(sut: SystemUnderTest, most: int) -> Iterator[HeldCalls]:
    """Trunks of calls that stay up until the block ends, of which there are none yet."""
    far_end = free_port()
    sut.server.add_carrier("held", f"udp:127.0.0.1:{far_end}", outbound=True)
    forward = {"target": "forward", "forward_to": f"sip:callee@127.0.0.1:{far_end}"}
    sut.server.add_number(sut.account, _HELD_NUMBER, forward)
    with ExitStack() as running:
        running.callback(callee(sut, far_end, Load(most)).kill)
        yield HeldCalls(sut, running)
