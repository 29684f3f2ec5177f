"""Report at the end of a run: time by folder, the slowest tests, and those that ran again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

import pytest
from _pytest.terminal import TerminalReporter

__all__ = ["RETRIED", "RunReport"]

RETRIED: Final = "retried"
"""The property of a test that ran again; its value is how long the machine stood still, in seconds."""
_SLOWEST: Final = 10


class RunReport:
    """A plugin of the process that collects the reports of all others."""

    def __init__(self) -> None:
        self.duration_s: defaultdict[str, float] = defaultdict(float)
        self.retried: dict[str, list[float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what setup, call and teardown of a test took."""
        self.duration_s[report.nodeid] += report.duration
        standstills = [float(str(value)) for name, value in report.user_properties if name == RETRIED]
        if standstills:
            self.retried[report.nodeid] = standstills

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Print it."""
        if not self.duration_s:
            return
        terminalreporter.section("where the time went")
        for line in self.lines():
            terminalreporter.write_line(line)

    def lines(self) -> Iterator[str]:
        """The report, by line."""
        yield from _by_folder(self.duration_s)
        yield f"the {_SLOWEST} slowest:"
        slowest = sorted(self.duration_s.items(), key=lambda item: -item[1])
        yield from (f"  {taken_s:8.1f} s  {test}" for test, taken_s in slowest[:_SLOWEST])
        again = sum(len(standstills) for standstills in self.retried.values())
        yield f"ran again after a standstill of the machine: {again} of {len(self.duration_s)} tests"
        for test, standstills in self.retried.items():
            yield f"  {', '.join(f'{still_s:.2f} s' for still_s in standstills)}  {test}"


def _by_folder(duration_s: dict[str, float]) -> Iterable[str]:
    taken: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for test, test_s in duration_s.items():
        folder = "/".join(PurePosixPath(test.partition("::")[0]).parts[:2])
        # In milliseconds: a counter counts.
        taken[folder] += round(test_s * 1_000)
        tests[folder] += 1
    yield "by folder, of all runners together:"
    yield from (
        f"  {ms / 1_000:8.1f} s  {folder} ({tests[folder]} tests)" for folder, ms in taken.most_common()
    )
