"""
Cost of a relayed or transcoded packet for ten to a thousand legs: `python -m benchmarks.media_scale`.

The media engine alone, one thread on one core, beside a relay that does nothing but recvmmsg and sendmmsg,
and beside as many legs that send silence, taken in turn in one run. A relayed leg takes two packets where a
silent one takes one. Prints a table, leaves JSON, and draws `--plot` where matplotlib is installed.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.machine import SUT_PREFIX, Usage, describe, sample
from benchmarks.sut import background, bare_relay, rtpload_binary, run_rtpload
from tests.support.ports import free_port
from tests.support.server_process import wait_until

_PAIRS = ("PCMU-PCMA", "PCMU-G722", "PCMU-L16", "PCMU-OPUS")
_COLUMNS = (
    "what",
    "legs",
    "us/packet",
    "x floor",
    "CPU %",
    "us/leg/s",
    "loss %",
    "RTT p50 ms",
    "p99",
    "p99.9",
    "KiB/call",
)

# Time in which all legs have begun to send.
_SETTLED_S = 0.5
_PACKETS_A_SECOND = 50

Step = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--legs", default="10,30,100,300,1000", help="legs of the relay steps")
    parser.add_argument(
        "--transcode-legs", default="100", help="legs of the transcoding steps; empty for none"
    )
    parser.add_argument(
        "--most", action="store_true", help="look for the largest number of calls on one core"
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each measured window")
    parser.add_argument("--rounds", type=int, default=1, help="times each step is taken; the least counts")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/media_scale.json"))
    parser.add_argument("--plot", type=Path, help="where the PNG goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trunkline-media-") as directory:
        steps = list(_steps(Path(directory), options))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"machine": describe(), "steps": steps}, indent=1) + "\n")
    print(f"written to {options.out}")
    if options.plot is not None:
        draw(steps, options.plot)
    return 0


def _steps(directory: Path, options: argparse.Namespace) -> Iterator[Step]:
    print("  ".join(name.rjust(12) for name in _COLUMNS))

    for legs in map(int, options.legs.split(",")):
        floor = _least(options.rounds, _floor, directory, legs // 2, options.seconds)
        yield _shown(floor)
        relay = _least(options.rounds, _engine, directory, legs // 2, options.seconds)
        yield _shown(_against(relay, floor))
        yield _shown(_least(options.rounds, _silence, legs // 2, options.seconds))
    for legs in map(int, filter(None, options.transcode_legs.split(","))):
        for pair in _PAIRS:
            yield _shown(_least(options.rounds, _engine, directory, legs // 2, options.seconds, pair))
    if options.most:
        yield from _most(directory, options.seconds)


def _least(rounds: int, take: Callable[..., Step], *arguments: object) -> Step:
    return min((take(*arguments) for _ in range(rounds)), key=lambda step: float(step["us_per_packet"]))


def _most(directory: Path, seconds: float) -> Iterator[Step]:
    """More and more calls until a packet in a thousand is lost."""
    for calls in (1000, 1250, 1500, 1750, 2000, 2500, 3000):
        step = _engine(directory, calls, seconds)
        yield _shown(step)
        if step["rtp"]["loss_pct"] >= 0.1:
            return


def _floor(directory: Path, calls: int, seconds: float) -> Step:
    with bare_relay(directory, calls) as (pid, ports):
        return _measure("bare relay", directory, pid, ports, seconds, free_port())


def _engine(directory: Path, calls: int, seconds: float, pair: str = "PCMU-PCMU") -> Step:
    echo, load = free_port(), free_port()
    near, far = pair.split("-")
    with background([rtpload_binary(directory), "echo", "--listen", str(echo)], directory):
        with _relay_process(["--calls", "0", "--load", str(load), "--echo", str(echo)]) as (pid, _):
            empty_kib = sample(pid).rss_kib
        arguments = ["--calls", str(calls), "--load", str(load), "--echo", str(echo)]
        with _relay_process([*arguments, "--near", near, "--far", far]) as (pid, ports):
            what = "relay" if near == far else pair
            step = _measure(what, directory, pid, ports, seconds, load)
    step["kib_per_call"] = round((step["rss_kib"] - empty_kib) / calls, 1)
    return step


def _silence(calls: int, seconds: float) -> Step:
    """Legs that nobody sends to, towards a port that nobody reads."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind(("127.0.0.1", free_port()))
        to = str(nobody.getsockname()[1])
        arguments = ["--calls", str(calls), "--load", to, "--echo", to, "--silent"]
        with _relay_process(arguments) as (pid, ports):
            wait_until(lambda: False, _SETTLED_S)
            before = sample(pid)
            wait_until(lambda: False, seconds)
            end = sample(pid)
    used = end.since(before)
    packets = 2 * len(ports) * seconds * _PACKETS_A_SECOND
    return {
        "what": "silence",
        "legs": 2 * len(ports),
        "us_per_packet": round(1e6 * used["cpu_s"] / packets, 2),
        "us_per_leg": round(1e6 * used["cpu_s"] / (2 * len(ports)) / seconds, 1),
        "rss_kib": end.rss_kib,
        "marked": False,
        "server": used,
    }


@contextmanager
def _relay_process(arguments: list[str]) -> Iterator[tuple[int, list[int]]]:
    command = [*SUT_PREFIX, sys.executable, "-m", "benchmarks.load.media_relay", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.pid, json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()


def _measure(what: str, directory: Path, pid: int, ports: list[int], seconds: float, load: int) -> Step:
    ends: list[Usage] = []
    report = run_rtpload(directory, ports, seconds, load, lambda _: ends.append(sample(pid)))
    used = ends[-1].since(ends[0])
    # Marks do not survive every codec. What comes back without them is counted beyond the window too, so no
    # more of it is believed than was sent within.
    returned = report["returned"] or min(report["sent"], report["unmarked"])
    packets = report["sent"] + returned
    return {
        "what": what,
        "legs": 2 * len(ports),
        "us_per_packet": round(1e6 * used["cpu_s"] / packets, 2) if packets else 0.0,
        "us_per_leg": round(1e6 * used["cpu_s"] / (2 * len(ports)) / seconds, 1),
        "rss_kib": ends[-1].rss_kib,
        "marked": report["returned"] > 0,
        "rtp": report,
        "server": used,
    }


def _against(step: Step, floor: Step) -> Step:
    step["times_floor"] = round(step["us_per_packet"] / floor["us_per_packet"], 2)
    return step


def _shown(step: Step) -> Step:
    unknown = {"loss_pct": "-", "rtt_ms": {"p50": "-", "p99": "-", "p999": "-"}}
    rtp: Mapping[str, Any] = step["rtp"] if step["marked"] else unknown
    rtt = rtp["rtt_ms"]
    cells = [step["what"], step["legs"], step["us_per_packet"], step.get("times_floor", "-")]
    cells += [step["server"]["cpu_pct"], step["us_per_leg"], rtp["loss_pct"]]
    cells += [rtt["p50"], rtt["p99"], rtt["p999"], step.get("kib_per_call", "-")]
    print("  ".join(str(cell).rjust(12) for cell in cells), flush=True)
    return step


def draw(steps: list[Step], path: Path) -> None:
    """Draw cost and delay against legs."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("no plot: matplotlib is not installed", file=sys.stderr)
        return
    figure, (cost, delay) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for what, name, style in (("bare relay", "bare relay", "--o"), ("relay", "Trunkline", "-s")):
        found = [step for step in steps if step["what"] == what]
        legs = [step["legs"] for step in found]
        cost.plot(legs, [step["us_per_packet"] for step in found], style, label=name)
        delay.plot(legs, [step["rtp"]["rtt_ms"]["p99"] for step in found], style, label=name)
    for axes, title, unit in (
        (cost, "CPU per relayed packet", "us"),
        (delay, "Round trip, 99th percentile", "ms"),
    ):
        axes.set(title=title, xlabel="legs", ylabel=unit, xscale="log")
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
    cost.set(ylim=(0, None))
    delay.set(yscale="log")
    figure.savefig(path, dpi=110)
    print(f"drawn to {path}")


if __name__ == "__main__":
    sys.exit(main())
