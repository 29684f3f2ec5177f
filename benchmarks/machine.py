"""Machine of a measurement, and the resources that a process used meanwhile."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = ["AGENT_PREFIX", "SUT_PREFIX", "TOOL_PREFIX", "Usage", "describe", "machine_busy_s", "sample"]

_ROOT = Path(__file__).resolve().parent.parent
_TICKS = os.sysconf("SC_CLK_TCK")
_NONE = "unknown"
_LOAD_BEFORE = os.getloadavg()
# The system under test has a core of its own where there are two; on one core figures mean little anyway.
_CORES = sorted(os.sched_getaffinity(0))
SUT_PREFIX = ["taskset", "-c", str(_CORES[0])]
TOOL_PREFIX = ["taskset", "-c", str(_CORES[-1])]
# Agents work as hard as the callers' side; where there is a third core it is theirs.
AGENT_PREFIX = ["taskset", "-c", str(_CORES[-2] if len(_CORES) > 2 else _CORES[-1])]


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources that a process used up to a moment."""

    at_s: float
    cpu_s: float
    media_cpu_s: float
    core_busy_s: float
    rss_kib: int
    context_switches: int

    def since(self, before: Usage) -> dict[str, Any]:
        """The difference, as it goes into a result."""
        wall_s = self.at_s - before.at_s
        cpu_s = self.cpu_s - before.cpu_s
        return {
            "wall_s": round(wall_s, 2),
            "cpu_s": round(cpu_s, 2),
            # Of it, the threads of the media engine.
            "media_cpu_s": round(self.media_cpu_s - before.media_cpu_s, 2),
            "cpu_pct": round(100 * cpu_s / wall_s, 1) if wall_s > 0 else 0.0,
            # Well above cpu_s: something else ran on the server's core, and the figure is doubtful.
            "core_busy_s": round(self.core_busy_s - before.core_busy_s, 2),
            "rss_mib": round(self.rss_kib / 1024, 1),
            "rss_grown_kib": self.rss_kib - before.rss_kib,
            "context_switches": self.context_switches - before.context_switches,
        }


def sample(pid: int) -> Usage:
    """Return the resources used by the process so far, over all its threads."""
    status = Path(f"/proc/{pid}/status").read_text()
    rss = re.search(r"VmRSS:\s+(\d+)", status)
    switches, media_cpu_s = 0, 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        text = (task / "status").read_text()
        switches += sum(int(found) for found in re.findall(r"ctxt_switches:\s+(\d+)", text))
        if text.startswith("Name:\ttl-media"):
            media_cpu_s += _cpu_s(task)
    return Usage(
        at_s=time.monotonic(),
        cpu_s=_cpu_s(Path(f"/proc/{pid}")),
        media_cpu_s=media_cpu_s,
        core_busy_s=_busy_s(f"cpu{_CORES[0]}"),
        rss_kib=int(rss.group(1)) if rss else 0,
        context_switches=switches,
    )


def _cpu_s(of: Path) -> float:
    fields = (of / "stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def describe() -> dict[str, Any]:
    """The machine, the commit and the versions, to stand beside every figure."""
    return {
        "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _cpu_model(),
        "cores": len(_CORES),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "kernel": platform.release(),
        "load_before": [round(value, 2) for value in _LOAD_BEFORE],
        "python": platform.python_version(),
        "sipp": _output("sipp", "-v").splitlines()[0].strip(" ."),
        "packages": {name: _version(name) for name in ("uvloop", "aiohttp", "picows", "sqlalchemy")},
    }


def _commit() -> str:
    commit = _output("git", "-C", str(_ROOT), "describe", "--always")
    # Documents are not measured, and benchmarks that ran before this one have written into theirs.
    changed = _output("git", "-C", str(_ROOT), "status", "--porcelain", "-uno", "--", ".", ":!docs")
    return commit if changed == _NONE else f"{commit}-dirty"


def machine_busy_s() -> float:
    """Return how long the processors were busy so far, as a share of all of them."""
    return _busy_s("cpu") / (os.cpu_count() or 1)


def _busy_s(processor: str) -> float:
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith(f"{processor} "):
            values = [int(value) for value in line.split()[1:9]]
            return (sum(values) - values[3] - values[4]) / _TICKS
    return 0.0


def _cpu_model() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found.group(1) if found else platform.machine()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return _NONE
    return done.stdout.strip() or _NONE
