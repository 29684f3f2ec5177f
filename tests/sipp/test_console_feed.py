"""Benchmark of open pages of the console, in little: calls are set up, and both sides are measured."""

from __future__ import annotations

import pytest

from benchmarks.console_calls import Load, measure
from benchmarks.sut import tools_missing

pytestmark = [
    pytest.mark.long("a server, calls that are up, and the same calls twice"),
    # `make test` installs them; the benchmark itself refuses to run without.
    pytest.mark.skipif(bool(tools_missing()), reason=f"needs {', '.join(tools_missing())}"),
]


def test_calls_are_set_up_beside_open_pages() -> None:
    # Times are those of the machine, and are not judged here.
    found = measure(Load(pages=20, up=10, rate=10.0, seconds=3.0, rounds=1, rtp_ports=2_000))
    for side in ("without_pages", "with_pages"):
        assert (found[side]["calls"], found[side]["failed"]) == (30, 0), found
        assert 0 <= found[side]["set_up_p50_ms"] <= found[side]["set_up_p99_ms"], found
