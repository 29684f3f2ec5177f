"""Signalling through the B2BUA: both legs from INVITE to BYE, records written, no media sent."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from benchmarks.machine import SUT_PREFIX, TOOL_PREFIX, sample
from benchmarks.sut import LOAD, NUMBER, SHARED_RTP_PORTS, SystemUnderTest, bare_relay
from tests.support.ports import free_port
from tests.support.server_process import ServerFailed, wait_until
from tests.support.sipp_run import Load, Sipp, start_sipp

CLAIM = (
    "CPU per bridged call's signalling, INVITE to BYE on both legs, held 1 s; records, ledger and two RTP "
    "ports included, beside a relay that moves the same datagrams unread and a B2BUA on aiosipua, which has "
    "none of these; each in turn, medians with the least and the most. Media is the part of the thread that "
    "sends silence to both ends, as neither sends anything"
)
COLUMNS = {
    "what": "what",
    "calls/s": "rate",
    "calls": "calls",
    "failed": "failed",
    "CPU ms/call": "cpu_ms_per_call",
    "range": "range",
    "media": "media_ms_per_call",
    "x aiosipua": "times_aiosipua",
    "x floor": "times_floor",
    "CPU %": "server.cpu_pct",
    "set-up p50 ms": "set_up_ms.p50",
    "p99": "set_up_ms.p99",
    "max": "set_up_ms.max",
    "repeated": "retransmissions",
    "RSS MiB": "server.rss_mib",
}
_AIOSIPUA = "aiosipua"
_RELAY = "bare relay"

Step = dict[str, Any]
Turn = Callable[[float, int], Step]


def run(sut: SystemUnderTest, arguments: argparse.Namespace) -> list[Step]:
    seconds = arguments.seconds or 15.0
    turns: dict[str, Turn] = {
        _RELAY: partial(_floor, sut),
        _AIOSIPUA: partial(_aiosipua, sut),
        "trunkline": partial(step, sut),
    }
    with ExitStack() as stack:
        if arguments.before is not None:
            folder = sut.directory / "before"
            folder.mkdir()
            before = stack.enter_context(
                SystemUnderTest(folder, rtp_ports=SHARED_RTP_PORTS, checkout=arguments.before.resolve())
            )
            step(before, 20, 40)
            turns["trunkline before"] = partial(step, before)
        step(sut, 20, 40)  # The first calls fill caches and pools; they are not counted.
        steps = []
        for rate in map(float, arguments.rates.split(",")):
            taken: dict[str, list[Step]] = {what: [] for what in turns}
            for number in range(arguments.rounds):
                # Whoever comes first this time comes last the next time.
                for what in list(turns)[:: 1 if number % 2 == 0 else -1]:
                    taken[what].append(turns[what](rate, round(rate * seconds)))
            steps += _compared({what: _median(what, of) for what, of in taken.items()})
    return steps


def _median(what: str, of: list[Step]) -> Step:
    """Return the step with the median cost, with the failures of all."""
    ordered = sorted(of, key=lambda one: float(one["cpu_ms_per_call"]))
    costs = [one["cpu_ms_per_call"] for one in ordered]
    middle = ordered[len(ordered) // 2]
    return {
        **middle,
        "what": what,
        "ok": what in (_RELAY, _AIOSIPUA) or all(one["ok"] for one in of),
        "failed": sum(one["failed"] for one in of),
        "calls": sum(one["calls"] for one in of),
        "retransmissions": sum(one["retransmissions"] for one in of),
        "cpu_ms_per_call": statistics.median(costs),
        "range": f"{costs[0]:.2f} to {costs[-1]:.2f}",
        "rounds": of,
    }


def _compared(steps: Mapping[str, Step]) -> list[Step]:
    for name, other in (("times_floor", steps[_RELAY]), ("times_aiosipua", steps[_AIOSIPUA])):
        for measured in steps.values():
            if measured["what"].startswith("trunkline") and other["cpu_ms_per_call"]:
                measured[name] = round(measured["cpu_ms_per_call"] / other["cpu_ms_per_call"], 2)
    return list(steps.values())


def step(sut: SystemUnderTest, rate: float, calls: int) -> Step:
    """Place calls at a rate, and measure them."""
    return _calls(sut, rate, calls, sut.server.pid, sut.target)


def _floor(sut: SystemUnderTest, rate: float, calls: int) -> Step:
    """The same calls from caller to callee by way of a relay that knows nothing of SIP."""
    with bare_relay(sut.directory, 1, sink=sut.uas_port) as (pid, (port,)):
        return _calls(sut, rate, calls, pid, f"127.0.0.1:{port}")


def _aiosipua(sut: SystemUnderTest, rate: float, calls: int) -> Step:
    """The same calls by way of a program on another SIP library."""
    port = free_port()
    program = [sys.executable, "-O", str(LOAD / "aiosipua_b2bua.py"), str(port), str(sut.uas_port)]
    process = subprocess.Popen([*SUT_PREFIX, *program], stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout is None or process.stdout.readline() != "ready\n":
            raise ServerFailed("the B2BUA on aiosipua did not start: is the extra `bench` installed?")
        return _calls(sut, rate, calls, process.pid, f"127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait()


def _calls(sut: SystemUnderTest, rate: float, calls: int, pid: int, target: str) -> Step:
    uas = callee(sut, sut.uas_port, Load(calls, rate))
    wait_until(lambda: False, 0.5)
    before = sample(pid)
    called = caller(sut, sut.uac_port, Load(calls, rate, 1000), NUMBER, target).wait(calls / rate + 60)
    used = sample(pid).since(before)
    taken = uas.stop()
    failed = calls - min(called.successful, taken.successful)
    return {
        "ok": failed == 0,
        "rate": rate,
        "calls": calls,
        "failed": failed,
        "retransmissions": called.retransmissions + taken.retransmissions,
        "cpu_ms_per_call": round(1000 * used["cpu_s"] / calls, 3),
        "media_ms_per_call": round(1000 * used["media_cpu_s"] / calls, 3),
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
