"""Resources of a running server, and their growth."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.support.server_process import ServerProcess

__all__ = ["KEPT", "Drift", "Sample", "slope"]

_MIB: Final = 1 << 20
RSS: Final = "process_resident_memory_bytes"
FDS: Final = "process_open_fds"

KEPT: Final = (
    "trunkline_calls_active",
    "trunkline_rtp_ports_in_use",
    "trunkline_sip_sessions",
    "trunkline_wallet_reserves_open",
)
"""Gauges of calls: all are zero when no call is up."""

_WATCHED: Final = (RSS, FDS, "trunkline_tasks", "trunkline_event_loop_lag_seconds_sum", *KEPT)


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at `/metrics`: how many calls there had been by then, and what was in use."""

    calls: int
    values: Mapping[str, float]


@dataclass(slots=True)
class Drift:
    """Samples of one server, in their order."""

    samples: list[Sample] = field(default_factory=list)

    def look(self, server: ServerProcess, calls: int) -> Sample:
        """Add a sample."""
        seen = {name: server.metric(name) for name in _WATCHED}
        self.samples.append(Sample(calls, seen))
        return self.samples[-1]

    def memory_mib_per_call(self, warm_calls: int) -> float:
        """Growth of memory after as many calls have warmed it up; 0 for too few samples."""
        late = [sample for sample in self.samples if sample.calls >= warm_calls]
        return slope([sample.calls for sample in late], [sample.values[RSS] for sample in late]) / _MIB

    def summary(self) -> str:
        """The first and the last sample in one line."""
        first, last = self.samples[0].values, self.samples[-1].values
        rss = f"RSS {first[RSS] / _MIB:.0f} -> {last[RSS] / _MIB:.0f} MiB"
        others = [
            f"{name.removeprefix('trunkline_')} {first[name]:.0f} -> {last[name]:.0f}"
            for name in (FDS, "trunkline_tasks", *KEPT)
        ]
        return ", ".join([rss, *others])


def slope(places: Sequence[float], values: Sequence[float]) -> float:
    """Return the growth of a value with its place, by least squares; 0 when the places do not differ."""
    if len(set(places)) < 2:
        return 0.0
    return statistics.linear_regression(places, values).slope
