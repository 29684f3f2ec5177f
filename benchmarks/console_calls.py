"""
Set-up times of calls through a whole server, with open pages of the console and without, in turns.

Many calls are up, and others come and go at a rate, whose changes every page gets. Each turn is the same
calls; whoever comes first in a round comes last in the next one.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from benchmarks.growth import ENVIRONMENT, held_calls
from benchmarks.machine import TOOL_PREFIX, describe
from benchmarks.sut import RTP_PORTS, SystemUnderTest
from benchmarks.w1_signalling import step
from tests.support.server_process import ServerFailed, wait_until

__all__ = ["Load", "measure"]

# Slower than the calls of a second that are measured, so that no overload is left when these begin.
_UP_PER_S = 8.0
# What opening the pages costs is not what they cost.
_SETTLED_S = 3.0


@dataclass(frozen=True)
class Load:
    """Pages that are open, calls that are up, the calls of each turn, and the RTP ports of the server."""

    pages: int = 200
    up: int = 500
    rate: float = 10.0
    seconds: float = 20.0
    rounds: int = 3
    rtp_ports: int = RTP_PORTS


def measure(load: Load) -> dict[str, Any]:
    """Measure; the medians of both sides, and each turn."""
    turns: dict[int, list[dict[str, Any]]] = {0: [], load.pages: []}
    with (
        tempfile.TemporaryDirectory(prefix="trunkline-console-") as folder,
        SystemUnderTest(Path(folder), ENVIRONMENT, rtp_ports=load.rtp_ports) as sut,
    ):
        token = _sign_in(sut)
        # The first calls fill caches and pools; they are not counted.
        step(sut, 20, 20)
        with held_calls(sut, load.up) as held:
            held.grow(load.up, _UP_PER_S)
            for number in range(load.rounds):
                for pages in sorted(turns, reverse=number % 2 == 1):
                    with _opened(sut, token, pages):
                        turns[pages].append(step(sut, load.rate, round(load.rate * load.seconds)))
    without, opened = (_side(of) for of in turns.values())
    return {
        "machine": describe(),
        "pages": load.pages,
        "calls_up": load.up,
        "calls_per_s": load.rate,
        "turns_of_s": load.seconds,
        "without_pages": without,
        "with_pages": opened,
        "core_of_pages": round((opened["cpu_pct"] - without["cpu_pct"]) / 100, 4),
    }


def _side(turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Medians of the turns of one side, with the failures of all."""
    times = [turn["set_up_ms"] for turn in turns]
    return {
        "calls": sum(turn["calls"] for turn in turns),
        "failed": sum(turn["failed"] for turn in turns),
        "set_up_p50_ms": statistics.median(one["p50"] for one in times),
        "set_up_p99_ms": statistics.median(one["p99"] for one in times),
        "set_up_max_ms": max(one["max"] for one in times),
        "cpu_pct": statistics.median(turn["server"]["cpu_pct"] for turn in turns),
        "turns": [{**turn["set_up_ms"], "cpu_pct": turn["server"]["cpu_pct"]} for turn in turns],
    }


@contextmanager
def _opened(sut: SystemUnderTest, token: str, pages: int) -> Iterator[None]:
    """Open pages in a process of their own, each of which has its first event, until the block ends."""
    if not pages:
        yield
        return
    reader = f"{sut.server.http_port} {token} {pages}"
    command = [*TOOL_PREFIX, sys.executable, "-m", "benchmarks.console_feed", "--read", reader]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout is None or process.stdout.readline() != "ready\n":
            raise ServerFailed("the pages could not be opened")
        wait_until(lambda: process.poll() is not None, _SETTLED_S)
        yield
        if process.poll() is not None:
            raise ServerFailed(f"the pages ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Stay at the answer, which has the cookie."""


def _sign_in(sut: SystemUnderTest) -> str:
    """Sign in to the console with the account's key; the token of the session."""
    form = urlencode({"key": sut.account.api_key}).encode()
    request = Request(f"{sut.server.url}/console/sign-in", form, {"Sec-Fetch-Site": "same-origin"})
    try:
        with build_opener(_NoRedirect).open(request, timeout=30) as answer:
            cookie: str = answer.headers["Set-Cookie"]
    except HTTPError as error:
        with error:
            raise ServerFailed(f"signing in was answered with {error.code}") from error
    return cookie.partition(";")[0].partition("=")[2]
