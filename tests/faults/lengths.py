"""
Length of the tests of this folder: short within `make test`, long within `make soak`.

One test has one implementation; only its numbers change. Each number has a name, its short and its long value
stand where it is used, and `TRUNKLINE_SOAK_NAME` in the environment overrules both. `TRUNKLINE_SOAK=1`
chooses the long ones, as `make soak` does.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from tests.faults import reports

__all__ = ["CHOSEN", "RTP_PORTS", "SOAK", "count", "progress", "seconds"]

SOAK: Final = os.environ.get("TRUNKLINE_SOAK", "") not in ("", "0")
"""True for the long versions, whose limits are the guaranteed ones; those of the short ones are generous."""

CHOSEN: Final[dict[str, dict[str, float]]] = {}
"""The numbers that were asked for, by the module that asked."""

_started_s = time.monotonic()


def seconds(name: str, *, short: float, long: float) -> float:
    """A length of time; `SOAK_S` of the Makefile is the one named `S`."""
    return _chosen(name, short, long, sys._getframe(1).f_globals["__name__"])


def count(name: str, *, short: int, long: int) -> int:
    """A number of calls, kills, repetitions or the like."""
    return int(_chosen(name, short, long, sys._getframe(1).f_globals["__name__"]))


def progress(text: str) -> None:
    """Tell whoever waits for a long version how far it is; the short ones say nothing."""
    if SOAK:
        reports.note(text)
        print(f"[soak {time.monotonic() - _started_s:7.0f} s] {text}", file=sys.stderr, flush=True)


def _chosen(name: str, short: float, long: float, module: str) -> float:
    told = os.environ.get(f"TRUNKLINE_SOAK_{name}", "")
    value = float(told) if told else long if SOAK else short
    CHOSEN.setdefault(module, {})[name] = value
    return value


RTP_PORTS: Final = count("RTP_PORTS", short=2_000, long=9_000)
"""RTP ports of a server under load; fewer let two long tests run at the same time."""
