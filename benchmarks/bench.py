"""
Runs the benchmarks: `python -m benchmarks.bench [NAME ...] [--out DIRECTORY]`, such as w1.

Each one starts a server of its own on one core, with the load on another, prints a table and leaves a JSON
file with everything it saw: machine, commit, versions, and the numbers of every step. Then its table and plot
in docs/performance.md are written anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import (
    api_latency,
    campaigns,
    growth,
    machine,
    masked_calls,
    report,
    streams,
    w1_signalling,
    w2_relay,
    w3_agent,
)
from benchmarks.scraping import scraped
from benchmarks.sut import RTP_PORTS, SHARED_RTP_PORTS, SystemUnderTest, tools_missing

CLAIMS = {
    "w1": w1_signalling,
    "w2": w2_relay,
    "w3": w3_agent,
    "growth": growth,
    "api": api_latency,
    "masked": masked_calls,
    "streams": streams,
    "campaigns": campaigns,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("claims", nargs="*", metavar="NAME", help=f"of {', '.join(CLAIMS)} (default: all)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="where JSON goes")
    parser.add_argument(
        "--document",
        type=Path,
        default=Path("docs/performance.md"),
        help="where tables and plots go; - nowhere",
    )
    parser.add_argument("--seconds", type=float, default=None, help="length of each measured window")
    parser.add_argument("--rates", default="50,100", help="w1: calls per second")
    parser.add_argument("--rounds", type=int, default=3, help="w1: turns of each server at each rate")
    parser.add_argument(
        "--before", type=Path, metavar="DIRECTORY", help="w1: another checkout, set up, to take turns with"
    )
    parser.add_argument("--api-rates", default="10,50", help="api: calls per second")
    parser.add_argument("--calls", help="w2, w3, streams: calls at the same time (100,200; 50,100; 100)")
    parser.add_argument("--up", default="10,100,300,1000", help="growth: calls that are up beside others")
    parser.add_argument("--growth-rate", type=float, default=20.0, help="growth: calls per second")
    parser.add_argument("--dialects", help="streams: which to measure (default: all)")
    parser.add_argument(
        "--most", action="store_true", help="streams: also look for the most one core carries"
    )
    parser.add_argument("--masked-rate", type=float, default=20.0, help="masked: calls per second")
    parser.add_argument("--masked-calls", type=int, default=2000, help="masked: how many calls of each kind")
    arguments = parser.parse_args()
    unknown = set(arguments.claims) - set(CLAIMS)
    if unknown:
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join(CLAIMS)}")
    missing = tools_missing()
    if missing:
        print(f"benchmarks need {', '.join(missing)}", file=sys.stderr)
        return 2
    return max([_run(name, arguments) for name in arguments.claims or CLAIMS])


def _run(name: str, arguments: argparse.Namespace) -> int:
    claim = CLAIMS[name]
    print(f"\n{name}: {claim.CLAIM}")
    result: dict[str, Any] = {"benchmark": name, "claim": claim.CLAIM, "machine": machine.describe()}
    with tempfile.TemporaryDirectory(prefix=f"trunkline-{name}-") as directory:
        environment = getattr(claim, "ENVIRONMENT", {})
        ports = RTP_PORTS if arguments.before is None else SHARED_RTP_PORTS
        with SystemUnderTest(Path(directory), environment, rtp_ports=ports) as sut, scraped(sut.server):
            steps: list[dict[str, Any]] = claim.run(sut, arguments)
    result["steps"] = steps
    print(_table(claim.COLUMNS, steps))
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {path}")
    if str(arguments.document) != "-":
        report.write(arguments.document, result, claim.COLUMNS)
    return 0 if all(step["ok"] for step in steps) else 1


def _table(columns: dict[str, str], steps: list[dict[str, Any]]) -> str:
    rows = report.rows(columns, steps)
    widths = [max(len(row[index]) for row in rows) for index in range(len(columns))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
