"""Calls while the host runs out of a resource, stands still, or jumps in time."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.hosts import Fault, Host
from tests.faults.lengths import seconds
from tests.faults.oracle.reconcile import reconcile
from tests.faults.shim import Shim

_FILLER = b"."


def _limited(host: Host, name: str, which: int, wanted: Callable[[], int]) -> Fault:
    """A limit of the running server, near what it uses when the fault begins; it has its limit back then."""
    pid = host.server.pid
    before = resource.prlimit(pid, which)
    return Fault(
        name,
        lambda: resource.prlimit(pid, which, (wanted(), before[1])),
        lambda: resource.prlimit(pid, which, before),
        lacks=name,
        told_once="accepting new calls again",
    )


@pytest.mark.long(reason="fills a host that is restarted for it")
def test_descriptors_that_run_out(host: Host) -> None:
    """With few file descriptors left new calls get 503; active calls and the API go on."""
    folder = f"/proc/{host.server.pid}/fd"
    host.survives(_limited(host, "descriptors", resource.RLIMIT_NOFILE, lambda: len(os.listdir(folder)) + 20))


def test_memory_that_runs_out(host: Host) -> None:
    """With little memory left new calls get 503; active calls and the API go on."""
    statm = Path(f"/proc/{host.server.pid}/statm")

    def wanted() -> int:
        return int(statm.read_text().split()[0]) * resource.getpagesize() * 21 // 20

    host.survives(_limited(host, "memory", resource.RLIMIT_AS, wanted))


def test_a_process_that_stands_still(host: Host) -> None:
    """A server that the system stops for a while goes on with its calls, and none is lost or doubled."""
    lasts_s = seconds("HOST_STOPPED_S", short=2.0, long=10.0)
    fault = Fault(
        "SIGSTOP",
        lambda: os.kill(host.server.pid, signal.SIGSTOP),
        lambda: os.kill(host.server.pid, signal.SIGCONT),
        answers=False,
        lasts_s=lasts_s,
    )
    host.survives(fault)


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_jumps(host: Host, shim: Shim, hours: int) -> None:
    """When the wall clock jumps by an hour no call ends, lasts or costs other than it did."""
    fault = Fault(f"clock {hours:+d} h", lambda: shim.set(clock_s=3600 * hours), shim.set)
    host.survives(fault)


@pytest.fixture(scope="module")
def cramped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A server without a standard output, with a log that nobody reads, and with ports for fifty calls."""
    folder = tmp_path_factory.mktemp("cramped")
    os.mkfifo(folder / "log")
    # Open for reading too, so that the server need not wait for a reader that never comes.
    pipe = os.open(folder / "log", os.O_RDWR | os.O_NONBLOCK)
    os.write(pipe, _FILLER * fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096))
    prefix = ["sh", "-c", f'exec "$@" 2<>{folder / "log"} >&-', "sh"]
    with Host(folder, prefix=prefix, rtp_ports=200) as running:
        yield running
    os.close(pipe)


@pytest.mark.long(reason="fills a pipe with log lines")
def test_a_log_that_nobody_reads(cramped: Host) -> None:
    """A full log pipe, or no standard output, stops neither calls nor the API."""
    cramped.survives(Fault("log pipe full", lambda: None, lambda: None))
    pipe = os.open(cramped.server.data_dir.parent / "log", os.O_RDONLY | os.O_NONBLOCK)
    unread = os.read(pipe, 1 << 20)
    os.close(pipe)
    assert set(unread) == set(_FILLER), "there was room for a line of the log"


@pytest.mark.long(reason="takes all ports of a host")
def test_ports_that_run_out(cramped: Host) -> None:
    """Callers without a free RTP port get 503 and cost nothing; active calls go on."""
    far, stage = cramped.stage.far, cramped.stage
    before = len(cramped.callers())
    stage.load(40.0, {"forwarded": 1}, calls=60)
    stage.wait(lambda: not far.counts()["placing"], "calls are not placed")
    stage.wait(lambda: all(leg["status"] for leg in cramped.callers()[before:]), "callers are not answered")
    statuses = Counter(leg["status"] for leg in cramped.callers()[before:])
    # Ports rest for a while before they are given again: it may be fewer than there are ports for.
    assert set(statuses) == {200, 503} and far.up() == statuses[200] <= 50, statuses
    assert cramped.lacks() is None, "whoever needs no port is still served"
    stage.end_calls()
    assert reconcile(stage.evidence()) == []
