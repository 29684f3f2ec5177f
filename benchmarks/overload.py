"""
Calls carried under overload: `python -m benchmarks.overload`.

First the knee is found: calls are offered at rising rates until a part of them is not answered any more. Then
`--times` the knee is offered, and `--offered` a second, while calls that came up before are held; at last, as
soon as that is over, calls at a modest rate. Goodput is what was answered per second. Callers that are
refused go away, those that are told nothing repeat themselves as RFC 3261 has them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.machine import TOOL_PREFIX, describe, sample
from benchmarks.sut import NUMBER, SystemUnderTest
from tests.support.ports import free_port
from tests.support.server_process import ServerFailed, wait_until
from tests.support.sipp_run import Load, Sipp, start_sipp

__all__ = ["ENVIRONMENT", "calls_held", "gateway", "goodput_kept", "measure", "offer"]

ENVIRONMENT = {
    "TRUNKLINE_MAX_CPS": "100000",
    "TRUNKLINE_MAX_CALLS": "20000",
    "TRUNKLINE_DRAIN_S": "1",
    "TRUNKLINE_MEDIA_TIMEOUT_S": "0",
}
"""No limit but what the machine can do; calls that are held say nothing."""
_HOLD_MS = 1000
_KEPT = 0.95
"""The share of the calls offered that is answered below the knee."""
_MODEST = 20.0
_PATIENCE_S = 120.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rates", default="50,100,150,200,250", help="calls per second, to find the knee")
    parser.add_argument("--times", type=float, default=3.0, help="how many times the knee is offered")
    parser.add_argument("--offered", type=float, default=1000.0, help="what is offered after that")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each step takes")
    parser.add_argument("--held", type=int, default=50, help="calls that are up meanwhile")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        with SystemUnderTest(Path(directory), ENVIRONMENT) as sut:
            rates = [float(rate) for rate in arguments.rates.split(",")]
            found = measure(
                sut,
                rates,
                lambda knee: [arguments.times * knee, arguments.offered],
                seconds=arguments.seconds,
                held=arguments.held,
            )
            print(json.dumps({"machine": describe(), **found}, indent=1))


def measure(
    sut: SystemUnderTest,
    rates: Sequence[float],
    beyond_knee: Callable[[float], Sequence[float]],
    *,
    seconds: float,
    held: int,
) -> dict[str, Any]:
    """
    Find the knee, offer what is beyond it, and see how calls go afterwards.

    Raises:
        ServerFailed: The calls to be held did not come up, or not even the lowest rate was carried.
    """
    with gateway(sut):
        offer(sut, 20, 2)  # The first calls fill caches and pools; they are not counted.
        steps = []
        for rate in rates:
            steps.append(offer(sut, rate, seconds))
            if steps[-1]["answered"] < _KEPT * steps[-1]["offered"]:
                break
        carried = [step["rate"] for step in steps if step["answered"] >= _KEPT * step["offered"]]
        if not carried:
            raise ServerFailed(f"{rates[0]:g} calls a second are too many: {steps[0]}")
        with calls_held(sut, held) as report:
            beyond = [offer(sut, rate, seconds) for rate in beyond_knee(max(carried))]
            began = time.monotonic()
            after = offer(sut, _MODEST, seconds)
            while after["answered"] < after["offered"] and time.monotonic() - began < _PATIENCE_S:
                after = offer(sut, _MODEST, 1.0)
            after["whole_after_s"] = round(time.monotonic() - began, 1)
    return {
        "knee": max(carried),
        "steps": steps,
        "beyond": beyond,
        "kept": [goodput_kept(step, steps) for step in beyond],
        "held": report,
        "after": after,
    }


def goodput_kept(step: dict[str, Any], others: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Share of the best goodput that is left under a load, by time and by CPU time that the server had."""
    return {
        figure: round(step[figure] / max(other[figure] for other in others), 3)
        for figure in ("goodput", "goodput_per_cpu_s")
    }


@contextmanager
def gateway(sut: SystemUnderTest) -> Iterator[Sipp]:
    """Make the callee's trunk answer every call."""
    running = start_sipp(
        "uas.xml",
        sut.directory,
        sut.uas_port,
        Load(1_000_000, 1),
        prefix=TOOL_PREFIX,
        extra=["-mp", str(free_port())],
    )
    wait_until(lambda: False, 0.5)
    try:
        yield running
    finally:
        running.kill()


@contextmanager
def calls_held(sut: SystemUnderTest, calls: int) -> Iterator[dict[str, Any]]:
    """Hold calls that came up before; afterwards the dictionary says how many of them failed."""
    report: dict[str, Any] = {"calls": calls}
    callers = _call(sut, "uac_stay.xml", Load(calls, 20.0))
    if not wait_until(lambda: sut.server.metric("trunkline_calls_active") >= calls, 30 + calls / 20):
        callers.kill()
        raise ServerFailed(f"the {calls} calls to be held did not come up")
    try:
        yield report
        report["still_up"] = int(sut.server.metric("trunkline_calls_active"))
    finally:
        callers.kill()


def offer(sut: SystemUnderTest, rate: float, seconds: float, hold_ms: int = _HOLD_MS) -> dict[str, Any]:
    """Offer calls at a rate for a while, and wait until the last is over."""
    calls = round(rate * seconds)
    before, began = sample(sut.server.pid), time.monotonic()
    ended = _ended(sut)
    callers = _call(sut, "uac_offered.xml", Load(calls, rate, hold_ms))
    # What was answered by the end of the offer is over by then.
    wait_until(lambda: not callers.running, seconds + hold_ms / 1000)
    in_time, until_s = _ended(sut) - ended, time.monotonic() - began - hold_ms / 1000
    during = sample(sut.server.pid).since(before)
    result = callers.wait(_PATIENCE_S + hold_ms / 1000)
    said = Counter(result.log)
    told_nothing = calls - said["answered"] - said["refused"]
    return {
        "rate": rate,
        "offered": calls,
        "answered": said["answered"],
        "refused": said["refused"],
        "told_nothing": told_nothing,
        "broken": result.failed - told_nothing,
        "goodput": round(in_time / until_s, 1),
        # On a machine that others use as well this says more.
        "goodput_per_cpu_s": round(in_time / during["cpu_s"], 1) if during["cpu_s"] else 0.0,
        "repeated": result.retransmissions,
        "set_up_ms": _spread(result.set_up_ms),
        "server": during,
    }


def _ended(sut: SystemUnderTest) -> float:
    """Number of calls carried to their end; refused calls do not count."""
    try:
        return sut.server.metric("trunkline_calls_ended_total")
    except KeyError:
        return 0.0  # There is none before the first.


def _spread(times_ms: Sequence[float]) -> dict[str, float]:
    if len(times_ms) < 2:
        return {}
    cuts = statistics.quantiles(times_ms, n=100)
    return {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1), "max": max(times_ms)}


def _call(sut: SystemUnderTest, scenario: str, load: Load) -> Sipp:
    return start_sipp(
        scenario,
        sut.directory,
        free_port(),
        load,
        target=sut.target,
        number=NUMBER,
        prefix=TOOL_PREFIX,
        extra=["-mp", str(free_port())],
    )


if __name__ == "__main__":
    main()
