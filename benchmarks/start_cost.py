"""
CPU of a server until it is ready, and of commands: `python -m benchmarks.start_cost [--rounds 5]`.

User and system time of the processes. Other work on the machine can double it, so the lowest of the rounds is
what counts; the median tells how quiet the machine was.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks.machine import describe
from tests.support.serving_command import TIMEOUT_S, Process, environment_in

_COMMANDS: Final = (
    ("--help",),
    ("demo", "--help"),
    ("accounts", "create", "--name", "Other"),
    ("keys", "list", "--account", "ACCOUNT"),
    ("wallet", "top-up", "--account", "ACCOUNT", "--amount", "1", "--reference", "r"),
    ("numbers", "list", "--account", "ACCOUNT"),
    ("nodes", "list"),
)


def cpu_to_ready_s(environment: Mapping[str, str]) -> float:
    """CPU of a server until its greeting."""
    server = Process(dict(environment), "--dev")
    # The fields from utime on, behind the name of the program, which may contain spaces.
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    server.stop()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def command(environment: Mapping[str, str], *arguments: str) -> tuple[float, str]:
    """CPU and output of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "api", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def main() -> None:
    """Measure all in turns, and print lowest and median of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    taken: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        existing = environment_in(Path(folder))
        cpu_to_ready_s(existing)
        account = json.loads(command(existing, "accounts", "create", "--name", "Acme")[1])["account_sid"]
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
            with tempfile.TemporaryDirectory() as fresh:
                taken.setdefault("server, fresh data", []).append(cpu_to_ready_s(environment_in(Path(fresh))))
            taken.setdefault("server, existing data", []).append(cpu_to_ready_s(existing))
            for arguments in _COMMANDS:
                shown = [account if argument == "ACCOUNT" else argument for argument in arguments]
                taken.setdefault(" ".join(arguments), []).append(command(existing, *shown)[0])
    print(describe())
    for name, values in taken.items():
        print(f"{min(values):6.2f} s lowest  {statistics.median(values):6.2f} s median  {name}")


if __name__ == "__main__":
    main()
