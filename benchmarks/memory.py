"""
Memory of a server under mixed calls with numbers of their own, by mapping, allocator, cache and type.

It prints a line after every so many calls, and leaves all that the probe tells in a JSON file: see
`benchmarks/load/probe`. An allocator is compared by `--environment MALLOC_ARENA_MAX=8`, or `LD_PRELOAD=FILE`.
"""

from __future__ import annotations

import argparse
import json
import socket
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.faults.oracle.stage import OracleStage
from tests.support.server_process import wait_until

_ROOT: Final = Path(__file__).resolve().parents[1]
_MIX: Final = {"forwarded": 6, "streamed": 1, "cancelled": 1, "outbound": 2, "otp": 1, "masked": 1}
_MIB: Final = 1 << 20
_SETTLED_S: Final = 36.0
"""Transactions are gone 32 s after the last call."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=24_000)
    parser.add_argument("--rate", type=float, default=40.0, help="calls a second")
    parser.add_argument("--each", type=int, default=1_200, help="calls between two looks")
    parser.add_argument(
        "--trace", type=int, default=0, help="frames that tracemalloc keeps; slows the server down"
    )
    parser.add_argument("--environment", nargs="*", default=[], metavar="NAME=VALUE", help="of the server")
    parser.add_argument("--out", type=Path, default=Path("memory.json"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        probe = Path(directory) / "probe"
        environment = {
            "PYTHONPATH": f"{_ROOT / 'benchmarks/load/probe'}:{_ROOT}",
            "TRUNKLINE_MEMORY_PROBE": str(probe),
            "TRUNKLINE_MEMORY_TRACE": str(arguments.trace),
            **dict(pair.split("=", 1) for pair in arguments.environment),
        }
        with OracleStage(Path(directory), environment, rtp_ports=6_000) as stage:
            _run(stage, probe, arguments)


def _run(stage: OracleStage, probe: Path, arguments: argparse.Namespace) -> None:
    looks: list[dict[str, Any]] = []

    def look(*, deep: bool = False) -> None:
        found = {"calls": stage.far.counts()["calls"], "at_s": time.monotonic(), **_ask(probe, deep)}
        looks.append(found)
        arguments.out.write_text(json.dumps(looks))
        print(_line(found), flush=True)

    hold_s = (0.05, 0.3)
    stage.callees(ring_s=(0.0, 0.2), hold_s=hold_s, refuse_share=0.05)
    look()
    for _ in range(0, arguments.calls, arguments.each):
        stage.load(arguments.rate, _MIX, calls=arguments.each, hold_s=hold_s)
        patience_s = 60 + 4 * arguments.each / arguments.rate
        stage.wait(lambda: not stage.far.counts()["placing"], "calls are not placed", patience_s)
        look()
    stage.end_calls()
    wait_until(lambda: False, _SETTLED_S)
    look(deep=True)


def _ask(probe: Path, deep: bool) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(probe))
        connection.sendall(b"deep" if deep else b"look")
        with connection.makefile("rb") as told:
            found: dict[str, Any] = json.loads(told.read())
    return found


def _line(found: dict[str, Any]) -> str:
    mappings, malloc, python = found["mappings_kib"], found["malloc"], found["python"]
    mib = {
        "RSS": sum(mappings.values()) / 1024,
        "anonymous": mappings.get("anonymous", 0) / 1024,
        "heap": mappings.get("[heap]", 0) / 1024,
        "malloc free": malloc.get("fordblks", 0) / _MIB,
        "Python used": python.get("bytes in allocated blocks", 0) / _MIB,
        "Python free": python.get("bytes in available blocks", 0) / _MIB,
        "SQLite": found["sqlite_bytes"] / _MIB,
    }
    shown = ", ".join(f"{name} {value:.1f}" for name, value in mib.items())
    entries = sum(size for size, _ in found["caches"].values())
    return f"{found['calls']:7d} calls: MiB {shown}; arenas {found['arenas']['count']}, cached {entries}"


if __name__ == "__main__":
    main()
