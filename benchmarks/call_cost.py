"""
Work of a forwarded call, counted and not timed: `python -m benchmarks.call_cost [--functions] [--rate 2]`,
or sampled: `--flame FILE.svg`.

SIPp calls a forwarded number of a real server; each call is answered, held 1 s and ended by the caller.
Counts depend little on what else the machine does. What the server does in as long without a call is taken
off. Data are kept in memory, since a disk that stalls would move SQLite's work to a thread.

Without an option the server runs under callgrind, which counts the instructions of all threads in user
space, by library. `--functions` counts the interpreter's calls of functions instead, by folder or (`--files`)
by file, and the statements and commits that reach SQLite; `--most` lists what is called most. `--flame` draws
a flame graph of the Python functions of the server under this load, each as wide as its share of the samples.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.machine import SUT_PREFIX, describe
from benchmarks.sut import NUMBER, SystemUnderTest
from benchmarks.w1_signalling import callee, caller
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load

_ROOT = Path(__file__).resolve().parent.parent
_QUIET_S = 6.0
"""After this time a call has left nothing: its ports rest 4 s, its transactions at most 5 s on loopback."""
_SAMPLES_PER_S = 200
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
_SQL = {"Cursor.execute": "statements", "Cursor.executemany": "statements", "Connection.commit": "commits"}
_OBJECT = re.compile(r"(c?)ob=\((\d+)\) ?(.*)")
_COST = re.compile(r"[+\-*\d]\S* (\d+)$")
Counts = collections.Counter[str]


class Counter:
    """
    Counts of a server's work since the last look.

    Attributes:
        prefix: Command that the server is started with.
    """

    def __init__(self, directory: Path, functions: bool) -> None:
        self._directory, self._functions = directory, functions
        self._out = directory / ("counts.json" if functions else "callgrind")
        self._looks = 0
        if functions:
            self.prefix = [sys.executable, "-m", "benchmarks.call_cost", "--profiled", str(self._out)]
        else:
            self.prefix = [
                "valgrind",
                "--tool=callgrind",
                "--instr-atstart=no",
                f"--callgrind-out-file={self._out}",
            ]
            self.prefix += ["--quiet"]

    def begin(self, pid: int) -> None:
        """Begin to count."""
        if not self._functions:
            _control("-i", "on", pid)
        self.look(pid)

    def look(self, pid: int) -> Counts:
        """Return the counts since the last look."""
        self._looks += 1
        if not self._functions:
            _control("-d", "call_cost", pid)
            return _by_object(Path(f"{self._out}.{self._looks}").read_text())
        self._out.unlink(missing_ok=True)
        os.kill(pid, signal.SIGUSR1)
        wait_until(self._out.exists, 30)
        return Counts(json.loads(self._out.read_text()))


def _control(option: str, value: str, pid: int) -> None:
    command = ["callgrind_control", f"--dump={value}" if option == "-d" else f"--instr={value}", str(pid)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def _by_object(dump: str) -> Counts:
    """Instructions by shared library of a dump."""
    counts = Counts()
    names: dict[str, str] = {}
    current, inclusive = "", False
    for line in dump.splitlines():
        if (found := _OBJECT.match(line)) is not None:
            name = names.setdefault(found[2], Path(found[3]).name)
            # `cob` is the library of the function called next, not of the lines that follow.
            current = current if found[1] else name
        elif line.startswith("calls="):
            inclusive = True  # The next line has the cost of the callee, which has lines of its own.
        elif (cost := _COST.match(line)) is not None:
            counts[current] += 0 if inclusive else int(cost[1])
            inclusive = False
    return counts


def serve_profiled(out: Path, arguments: list[str]) -> None:
    """Run `python ARGUMENTS` (`-m api serve`) and write the counts of its calls upon SIGUSR1."""
    counts = Counts()

    def entered(frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            counts[f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"] += 1
        elif event == "c_call":
            counts[f"c:{getattr(called, '__qualname__', '?')}"] += 1

    def write(*_: Any) -> None:
        partial = out.with_suffix(".part")
        partial.write_text(json.dumps(counts))
        partial.rename(out)
        counts.clear()

    signal.signal(signal.SIGUSR1, write)
    sys.argv = arguments[1:]
    threading.setprofile(entered)
    sys.setprofile(entered)
    runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)


def place(sut: SystemUnderTest, rate: float, calls: int) -> None:
    """Place calls, and wait until none has left anything."""
    uas = callee(sut, sut.uas_port, Load(calls, rate))
    wait_until(lambda: False, 0.5)
    called = caller(sut, sut.uac_port, Load(calls, rate, 1000), NUMBER, sut.target).wait(calls / rate + 120)
    taken = uas.stop()
    if min(called.successful, taken.successful) != calls:
        raise SystemExit(f"call_cost: {called.successful} of {calls} calls succeeded")
    wait_until(lambda: False, _QUIET_S)


def draw_flames(path: Path, rate: float, calls: int) -> None:
    """Place calls, and write a flame graph of the server meanwhile."""
    sampler = Path(sys.executable).with_name("py-spy")
    if not sampler.exists():
        raise SystemExit("call_cost: flame graphs are made by py-spy: pip install '.[bench]'")
    with tempfile.TemporaryDirectory(prefix="trunkline-cost-", dir=_MEMORY) as folder:
        with SystemUnderTest(Path(folder), rtp_ports=2_000) as sut:
            place(sut, min(rate, 5), 10)
            # Those that hold the interpreter's lock: py-spy takes some waiting threads for busy ones.
            command = [str(sampler), "record", "--pid", str(sut.server.pid), "--output", str(path.absolute())]
            command += ["--gil", "--function", "--rate", str(_SAMPLES_PER_S), "--duration", "unlimited"]
            with subprocess.Popen(command, stdin=subprocess.DEVNULL) as sampling:
                try:
                    place(sut, rate, calls)
                finally:
                    sampling.send_signal(signal.SIGINT)
                    status = sampling.wait(120)
    if status != 0 or not path.exists():
        raise SystemExit(f"call_cost: py-spy ended with {status}; it must be allowed to trace the server")


def main() -> None:
    """Place calls and print what one of them costs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--functions", action="store_true")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--rate", type=float, default=2.0)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--flame", type=Path)
    asked = parser.parse_args()
    print(describe())
    if asked.flame:
        draw_flames(asked.flame, asked.rate, asked.calls)
        return
    with tempfile.TemporaryDirectory(prefix="trunkline-cost-", dir=_MEMORY) as folder:
        counter = Counter(Path(folder), asked.functions)
        sut = SystemUnderTest(Path(folder), rtp_ports=2_000)
        sut.server._prefix = [*SUT_PREFIX, *counter.prefix]  # Known only when the folder is.
        with sut:
            place(sut, min(asked.rate, 5), 10)
            pid = sut.server.pid
            counter.begin(pid)
            began = time.monotonic()
            place(sut, asked.rate, asked.calls)
            used, wall_s = counter.look(pid), time.monotonic() - began
            wait_until(lambda: False, wall_s)
            idle = counter.look(pid)
    used.subtract(idle)
    if asked.json:
        asked.json.write_text(json.dumps(used, indent=1))
    per_call = {name: number / asked.calls for name, number in used.items()}
    report(per_call, sum(idle.values()) / wall_s, asked)


def report(per_call: dict[str, float], idle_per_s: float, asked: argparse.Namespace) -> None:
    """Print the counts of one call."""
    if not asked.functions:
        for name, number in sorted(per_call.items(), key=lambda item: -item[1])[:12]:
            print(f"{number / 1e6:9.3f}  {name}")
        print(
            f"{sum(per_call.values()) / 1e6:9.3f} million instructions per call, "
            f"{idle_per_s / 1e6:.1f} per second without calls"
        )
        return
    sql: dict[str, float] = collections.defaultdict(float)
    parts: dict[str, float] = collections.defaultdict(float)
    for name, number in per_call.items():
        if name.startswith("c:"):
            parts["(builtin)"] += number
            if name[2:] in _SQL:
                sql[_SQL[name[2:]]] += number
        else:
            parts[_part(name.rsplit(":", 1)[0], asked.files)] += number
    for name, number in sorted(parts.items(), key=lambda item: -item[1])[:60]:
        print(f"{number:9.1f}  {name}")
    python = sum(number for name, number in parts.items() if name != "(builtin)")
    print(f"{python:9.1f} calls of Python functions, {parts['(builtin)']:.1f} of builtin ones")
    print(", ".join(f"{number:.2f} {name}" for name, number in sql.items()), "per call")
    for name, number in collections.Counter(per_call).most_common(asked.most):
        print(f"{number:9.2f}  {name.replace(str(_ROOT) + '/', '')}")


def _part(path: str, whole: bool) -> str:
    if path.startswith("<") or not path.startswith(str(_ROOT)) or ".venv" in path:
        found = re.search(r"site-packages/(\w+)|lib/python3\.\d+/(\w+)", path)
        return f"({found[1] or found[2]})" if found else f"({path})"
    relative = Path(path).relative_to(_ROOT)
    return str(relative) if whole else str(relative.parent)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--profiled"]:
        # What follows the interpreter's name is `-m api serve`.
        serve_profiled(Path(sys.argv[2]), sys.argv[4:])
    else:
        main()
