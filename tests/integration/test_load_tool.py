"""The load tool of the benchmarks measures what it should, against itself."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from benchmarks.machine import describe, sample
from benchmarks.sut import LOAD
from tests.support.ports import free_port, port_range

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
    pytest.mark.real_time(reason="load tool in a process of its own"),
]
CALLS = 4


@pytest.fixture(scope="module")
def rtpload(tmp_path_factory: pytest.TempPathFactory) -> str:
    binary = str(tmp_path_factory.mktemp("load") / "rtpload")
    source = str(LOAD / "rtpload.c")
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", binary, source], check=True)
    return binary


@contextmanager
def running(*command: str) -> Iterator[dict[str, Any]]:
    """A tool in the background, and its report once it has been told to end."""
    report: dict[str, Any] = {}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield report
    finally:
        process.terminate()
        report.update(json.loads(process.communicate(timeout=20)[0]))


def send(rtpload: str, *ports: int) -> dict[str, Any]:
    targets = ",".join(map(str, ports))
    command = [rtpload, "send", "--listen", str(free_port()), "--seconds", "0.5", "--targets", targets]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_every_packet_returns_through_relay_and_echo(rtpload: str) -> None:
    sink = free_port()
    (near, _), (far, _) = port_range(2 * CALLS), port_range(2 * CALLS)
    with ExitStack() as stack:
        stack.enter_context(running(rtpload, "echo", "--listen", str(sink)))
        relay = stack.enter_context(
            running(
                *(rtpload, "relay", "--near", str(near), "--far", str(far)),
                *("--sink", str(sink), "--calls", str(CALLS)),
            )
        )
        report = send(rtpload, *(near + 2 * index for index in range(CALLS)))
    assert report["calls"] == CALLS and report["silent_calls"] == 0
    # On a machine that stands still for a moment the kernel may drop some; most must have come back.
    assert report["sent"] >= report["returned"] > report["sent"] * 0.5 > 0
    assert report["unmarked"] == report["foreign"] == report["duplicates"] == 0
    assert 0 < report["rtt_ms"]["p50"] <= report["rtt_ms"]["p999"]
    assert relay["packets"] >= 2 * report["returned"]


def test_a_peer_that_says_nothing_is_reported(rtpload: str) -> None:
    report = send(rtpload, free_port())
    assert (report["silent_calls"], report["returned"], report["loss_pct"]) == (1, 0, 100.0)


def test_a_result_says_where_it_was_measured() -> None:
    described = describe()
    assert described["commit"] and described["cores"] >= 1 and described["memory_mib"] > 0


def test_usage_grows_with_work() -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        try:
            before = sample(busy.pid)
            with pytest.raises(subprocess.TimeoutExpired):
                busy.wait(0.5)
            used = sample(busy.pid).since(before)
        finally:
            busy.kill()
    assert used["cpu_s"] > 0 and used["wall_s"] >= 0.5
