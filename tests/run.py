"""
Runs the tests by tier and tells how long each part took: ``python -m tests.run fast``.

=====  =============================================================================================
fast   units, layering, and the API's contract in process
test   all but what is marked `long`, with the native tests
long   what `test` leaves out: the marked tests, and property tests with all their examples
=====  =============================================================================================

Tests of real time share the cores with loads and with each other: the few that failed run again, each
alone, which is told. Native tests under sanitizers have the machine to themselves, and have one chance.

What follows the tier goes to pytest. ``TEST_RUNNERS`` is how many processes run tests; most of them wait,
so three for each processor are the default, eight at most: the ports of 127.0.0.1 are divided among them.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.native import builds

_ROOT: Final = Path(__file__).resolve().parents[1]
_OF_CLIENTS: Final = "clients/python/tests"
_ALL: Final = ("tests", _OF_CLIENTS)
_NATIVE: Final = "tests/native"
_CORES: Final = os.cpu_count() or 1
_FAILED: Final = _ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
_REWRITTEN: Final = _ROOT / ".cache" / "asserts-rewritten"
# An environment in which modules are compiled anew at each start costs each runner 13 s.
_CACHED: Final = {"PYTHONDONTWRITEBYTECODE": ""}
_MOST_RUNNERS: Final = 8
_MOST_AGAIN: Final = 6
_FAST: Final = (
    "tests/unit",
    "tests/contract",
    _OF_CLIENTS,
    *sorted(f"tests/{path.name}" for path in _ROOT.glob("tests/test_*.py")),
)


def main(arguments: Sequence[str]) -> int:
    """Run a tier; 0 when all of it passed."""
    if not arguments or arguments[0] not in _TIERS:
        print(f"usage: python -m tests.run {'|'.join(_TIERS)} [arguments of pytest]", file=sys.stderr)
        return 2
    tier, *of_pytest = arguments
    steps = _TIERS[tier](of_pytest)
    taken: dict[str, float] = {}
    # What is named is little, and runs sooner without.
    if tier != "fast" and not _named(of_pytest):
        begun_s = time.monotonic()
        _rewrite_asserts()
        taken["rewriting of asserts"] = time.monotonic() - begun_s
    again: list[str] = []
    status = 0
    for step in steps:
        print(f"{tier}: {step.name}", flush=True)
        begun_s = time.monotonic()
        _FAILED.unlink(missing_ok=True)
        status = _run(step.command, step.environment)
        if status == 1 and 0 < len(failed := _failed()) <= step.most_again:
            print(f"{tier}: {len(failed)} failed beside others: again, each alone", flush=True)
            # In processes of their own: a test must not lack the ports that another one has locked.
            alone = [
                _run([sys.executable, "-m", "pytest", "-q", "-n", "0", test], step.environment)
                for test in failed
            ]
            # One that a signal ended has a negative status.
            status = next((one for one in alone if one), 0)
            again.append(
                f"{len(failed)} failed beside others, {len(alone) - alone.count(0)} of them also alone"
            )
        taken[step.name] = time.monotonic() - begun_s
        if status:
            break
    parts = ", ".join(f"{name} {part_s:.0f} s" for name, part_s in taken.items())
    told = "; ".join([f"{'failed' if status else 'passed'} in {sum(taken.values()):.0f} s ({parts})", *again])
    print(f"{tier}: {told}")
    return status


def _run(command: Sequence[str | Path], environment: Mapping[str, str]) -> int:
    return subprocess.run(command, cwd=_ROOT, env={**os.environ, **_CACHED, **environment}).returncode


def _failed() -> list[str]:
    """Tests that failed in the last run of pytest."""
    return list(json.loads(_FAILED.read_text())) if _FAILED.is_file() else []


def _rewrite_asserts() -> None:
    """
    Rewrite the asserts of tests that have changed, as pytest does, with a process for each processor.

    Each runner would do it by itself otherwise, and all at the same time. What fails here fails in the run.
    """
    files = sorted(str(path) for path in (_ROOT / "tests").rglob("test_*.py"))
    if _REWRITTEN.exists():
        last_s = _REWRITTEN.stat().st_mtime
        files = [file for file in files if os.stat(file).st_mtime > last_s]
    print(f"rewriting the asserts of {len(files)} files", flush=True)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    running = [
        subprocess.Popen([*command, *share], cwd=_ROOT, env=os.environ | _CACHED, stdout=subprocess.DEVNULL)
        for number in range(_CORES)
        if (share := files[number::_CORES])
    ]
    for process in running:
        process.wait()
    _REWRITTEN.parent.mkdir(exist_ok=True)
    _REWRITTEN.touch()


class Step(NamedTuple):
    """A command of a tier. Up to `most_again` of its tests that failed run a second time."""

    name: str
    command: Sequence[str | Path]
    environment: Mapping[str, str] = {}
    most_again: int = 0


def _fast(of_pytest: Sequence[str]) -> list[Step]:
    return [Step("tests", _pytest("not long", of_pytest, _FAST, _CORES))]


def _test(of_pytest: Sequence[str]) -> list[Step]:
    return [
        _native(builds.PLAIN),
        Step("tests", _pytest("not long", of_pytest, _ALL), most_again=_MOST_AGAIN),
    ]


def _long(of_pytest: Sequence[str]) -> list[Step]:
    sanitized = [_native(builds.SANITIZED), _native(builds.THREADS)]
    # Browsers and loads take more than a core each: more runners would make timers of others late.
    others = _pytest("long or hypothesis", of_pytest, (*_ALL, f"--ignore={_NATIVE}"), 2 * _CORES)
    if not _named(of_pytest):
        native = _pytest("long", of_pytest, (_NATIVE,), _CORES)
        sanitized.append(Step("native tests under sanitizers", native))
    return [*sanitized, Step("tests", others, {"TRUNKLINE_THOROUGH": "1"}, _MOST_AGAIN)]


def _native(kind: str) -> Step:
    return Step(f"build of the native tests ({kind})", [sys.executable, "-m", "tests.native.builds", kind])


def _pytest(
    marked: str,
    of_pytest: Sequence[str],
    places: Sequence[str],
    runners: int = min(3 * _CORES, _MOST_RUNNERS),
) -> list[str]:
    count = os.environ.get("TEST_RUNNERS") or str(runners)
    ours = ["-q", "-n", count, "--dist", "worksteal", "-m", marked]
    # A place that the caller names takes the place of all.
    chosen = () if _named(of_pytest) else places
    return [sys.executable, "-m", "pytest", *ours, *chosen, *of_pytest]


def _named(of_pytest: Sequence[str]) -> list[str]:
    return [argument for argument in of_pytest if argument.startswith(("tests/", "clients/"))]


_TIERS: Final = {"fast": _fast, "test": _test, "long": _long}

if __name__ == "__main__":
    more = shlex.split(os.environ.get("PYTEST_ARGS", ""))
    raise SystemExit(main([*sys.argv[1:], *more]))
