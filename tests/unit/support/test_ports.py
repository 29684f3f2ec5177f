"""Ports for what tests start: those of processes that work side by side lie apart."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import subprocess
import sys
from pathlib import Path

from tests.support.loopback_server import loopback_settings
from tests.support.ports import free_port, port_range

_ROOT = Path(__file__).resolve().parents[3]
_FINDS_PORTS = """
from tests.support.ports import free_port, port_range
first, last = port_range(1600)
print(*{free_port() for _ in range(150)}, *range(first, last + 1), flush=True)
input()
"""

_TAKES_LARGE_RANGES = """
from tests.support.ports import NoPortLeft, port_range
large = port_range(3000)
print("again" if large == port_range(3000) else large, end=" ")
try:
    port_range(9000), port_range(7000)
except NoPortLeft:
    print("none left", end="")
"""

_TAKES_PORTS_ALONE = """
from tests.support.ports import exclusive_ports
with exclusive_ports() as first:
    print(first, flush=True)
    input()
"""


def test_processes_that_run_at_the_same_time_are_given_no_port_twice(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        finders = [stack.enter_context(_started(_FINDS_PORTS, tmp_path)) for _ in range(8)]
        found = [set(_line(finder).split()) for finder in finders]
    assert len(found) == 8 and all(len(ports) == 1750 for ports in found)
    assert len(set.union(*found)) == 8 * 1750


def test_a_large_range_is_given_again_and_no_span_is_given_twice(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-S", "-c", _TAKES_LARGE_RANGES],
        cwd=_ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert said.stdout == "again none left"


def test_exclusive_ports_are_those_of_one_process_until_it_gives_them_back(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        takers = [stack.enter_context(_started(_TAKES_PORTS_ALONE, tmp_path)) for _ in range(3)]
        given = [_line(taker) for taker in takers]
        assert len(set(given)) == 3
        late = stack.enter_context(_started(_TAKES_PORTS_ALONE, tmp_path))
        assert late.stdout is not None
        assert select.select([late.stdout], [], [], 0.3)[0] == [], "given though others had all"
        for taker in takers:
            taker.communicate("\n")
        assert _line(late) in given


def test_single_ports_leave_room_for_media() -> None:
    given = sorted(free_port() for _ in range(30))
    assert all(later - sooner >= 4 for sooner, later in itertools.pairwise(given))


def test_successive_ranges_do_not_overlap() -> None:
    # 600 and 200 by turns: the range after the end of the span meets each position.
    given = [port_range(size) for size in (600, 200, 600, 600) * 20]
    for (first, last), (next_first, next_last) in itertools.pairwise(given):
        assert last < next_first or next_last < first


def test_a_server_and_its_sandbox_have_separate_ports(tmp_path: Path) -> None:
    # Other ranges before them: so the two meet the end of the span.
    for size in range(100, 700, 100):
        port_range(size)
        settings = loopback_settings(tmp_path, rtp_ports=800)
        assert not settings.rtp_ports.overlaps(settings.sandbox_rtp_ports)


def test_ranges_follow_one_another_and_begin_with_an_even_port() -> None:
    first, last = port_range(101)
    assert (last - first, first % 2) == (100, 0)
    following, _ = port_range(50)
    assert following == last + 2 or following < first, "none is given twice in a row"


def _started(program: str, folder: Path) -> subprocess.Popen[str]:
    """Start a program that finds its locks in this folder, and ends with its input."""
    return subprocess.Popen(
        [sys.executable, "-S", "-c", program],
        cwd=_ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
