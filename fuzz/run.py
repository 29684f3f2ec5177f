"""
Fuzz the parsers: ``python fuzz/run.py --time 60 [--seed N] [TARGET...]``.

An input that ends in anything but a permitted exception, breaks a round trip
or takes too long is saved and makes the exit status 1. Run it again with
``--replay FILE TARGET``. Once mended, it belongs in tests/vectors/fuzz/TARGET.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.harness import Finding, Fuzzer, Target, load_targets  # noqa: E402

SLICE_S = 2.0
"""Targets take turns, so that an early end has still tried all of them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run the targets, report; the exit status."""
    targets = load_targets()
    options = _parse_arguments(arguments, targets)
    chosen = [targets[name] for name in options.targets or targets]
    if options.replay is not None:
        replayed = [Fuzzer(target, 0).execute(options.replay.read_bytes()) for target in chosen]
        findings = [finding for finding in replayed if finding is not None]
    else:
        print(f"seed {options.seed}, {len(chosen)} targets, {options.time:g} s")
        findings = _run(chosen, options.seed, options.time)
    for finding in findings:
        _report(finding, options.crashes)
    return 1 if findings else 0


def _parse_arguments(arguments: Sequence[str] | None, targets: dict[str, Target]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fuzz what reads input from peers.")
    parser.add_argument("--time", type=float, default=60.0, help="seconds in all (default 60)")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(2**32), help="repeat a run"
    )
    parser.add_argument("--crashes", type=Path, default=Path("var/fuzz"), help="where findings are saved")
    parser.add_argument("--replay", type=Path, help="run the targets on this one file")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(targets))
    options = parser.parse_args(arguments)
    if unknown := set(options.targets) - set(targets):
        parser.error(f"unknown target {', '.join(sorted(unknown))}; there are {', '.join(targets)}")
    return options


def _run(targets: Sequence[Target], seed: int, time_s: float) -> list[Finding]:
    deadline = time.monotonic() + time_s
    running = [Fuzzer(target, seed) for target in targets]
    slice_s = min(SLICE_S, time_s / len(running))
    findings: list[Finding] = []
    fuzzers = list(running)
    while running and time.monotonic() < deadline:
        for fuzzer in list(running):
            finding = fuzzer.run(until=min(deadline, time.monotonic() + slice_s))
            if finding is not None:
                findings.append(finding)
                running.remove(fuzzer)
    for fuzzer in fuzzers:
        print(f"{fuzzer.target.name:20} {fuzzer.executions:9} inputs {len(fuzzer.outcomes):4} outcomes")
    return findings


def _report(finding: Finding, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{finding.target}-{hashlib.sha256(finding.data).hexdigest()[:12]}"
    path.write_bytes(finding.data)
    traceback.print_exception(finding.error)
    print(f"{finding.target}: {finding.data[:200]!r}\n  saved as {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
