"""
The tables and plots of docs/performance.md that `make bench` writes.

What stands between `<!-- bench NAME -->` and `<!-- end of NAME -->` is written anew for benchmark NAME, with
its plot in a file beside the document; the others stay as they were. A benchmark without a place there is
left out, and so are figures of a commit with changes or of a busy machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["rows", "section", "write"]

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Panel:
    """One diagram: a value of the steps against another; a line for each `what`."""

    title: str
    unit: str
    value: str
    against: str
    axis: str


_PANELS: dict[str, tuple[_Panel, ...]] = {
    "w1": (
        _Panel("CPU per call", "ms", "cpu_ms_per_call", "rate", "calls per second"),
        _Panel("Set-up time, 99th percentile", "ms", "set_up_ms.p99", "rate", "calls per second"),
    ),
    "w2": (
        _Panel("CPU per relayed packet", "us", "cpu_us_per_packet", "calls", "calls"),
        _Panel("Round trip, 99th percentile", "ms", "rtp.rtt_ms.p99", "calls", "calls"),
    ),
    "w3": (
        _Panel("CPU per 100 streams", "% of a core", "cpu_pct_per_100", "calls", "streams"),
        _Panel("Round trip, 99th percentile", "ms", "rtp.rtt_ms.p99", "calls", "streams"),
    ),
    "growth": (
        _Panel("CPU per call", "ms", "cpu_ms_per_call", "up", "calls up"),
        _Panel("Memory per call that is up", "KiB", "kib_per_call", "up", "calls up"),
        _Panel("Set-up time, 99th percentile", "ms", "set_up_ms.p99", "up", "calls up"),
    ),
}


def write(document: Path, result: Mapping[str, Any], columns: Mapping[str, str]) -> None:
    """Put a benchmark's result into the document, if the document has a place for it."""
    name, text = result["benchmark"], document.read_text() if document.exists() else ""
    if (objection := _objection(result["machine"])) is not None:
        print(f"not written into {document}: {objection}")
        return
    place = re.compile(rf"(<!-- bench {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    if place.search(text) is None:
        return
    plot = document.with_name(f"{document.stem}-{name}.svg")
    drawn = name in _PANELS and _draw(_PANELS[name], result["steps"], plot)
    body = section(result, columns, plot.name if drawn else None)
    document.write_text(place.sub(lambda found: f"{found[1]}{body}{found[2]}", text))
    print(f"written into {document}")


def _objection(machine: Mapping[str, Any]) -> str | None:
    """Return the reason why figures of this machine and commit are not published."""
    if machine["commit"].endswith("-dirty"):
        return f"commit {machine['commit']} has changes"
    if machine["load_before"][0] > machine["cores"] / 2:
        return f"the load of the machine was {machine['load_before'][0]:g}, of {machine['cores']} cores"
    return None


def section(result: Mapping[str, Any], columns: Mapping[str, str], plot: str | None) -> str:
    """Return the section of the document about a benchmark, as Markdown."""
    machine = result["machine"]
    head, *body = rows(columns, result["steps"])
    lines = [
        f"`make bench BENCH_ARGS={result['benchmark']}`: {result['claim']}.",
        "",
        f"{machine['when'][:10]}, commit {machine['commit']}; {machine['cpu']}, {machine['cores']} cores, "
        f"Linux {machine['kernel']}, CPython {machine['python']}; load of the machine before it "
        f"{machine['load_before'][0]:g}.",
        "",
        _line(head),
        _line(["---"] * len(head)),
        *map(_line, body),
        "",
    ]
    if plot is not None:
        lines += [f"![{result['claim']}]({plot})", ""]
    return "\n".join(lines)


def rows(columns: Mapping[str, str], steps: Sequence[Step]) -> list[list[str]]:
    """The names of the columns, then the cells of each step; a column is a path of keys into the step."""
    return [
        [name.strip() for name in columns],
        *([_shown(_at(step, path)) for path in columns.values()] for step in steps),
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(value: Any) -> str:
    return "-" if value is None else str(value)


def _at(step: Step, path: str) -> Any:
    value: Any = step
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _draw(panels: Sequence[_Panel], steps: Sequence[Step], path: Path) -> bool:
    """Draw the panels side by side; whether that could be done."""
    try:
        from matplotlib import pyplot, rcParams
    except ImportError:
        print("no plot: matplotlib is not installed")
        return False
    # The same figures give the same file.
    rcParams.update({"svg.hashsalt": path.stem, "svg.fonttype": "none"})
    figure, axes = pyplot.subplots(1, len(panels), figsize=(5 * len(panels), 3.8), layout="constrained")
    for axis, panel in zip(axes, panels, strict=True):
        for what, points in _series(panel, steps).items():
            axis.plot(*zip(*points, strict=True), marker="o", label=what)
        axis.set(title=panel.title, xlabel=panel.axis, ylabel=panel.unit, ylim=(0, None))
        axis.grid(visible=True, alpha=0.3)
        if len(axis.lines) > 1:
            axis.legend()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return True


def _series(panel: _Panel, steps: Sequence[Step]) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for step in steps:
        value = _at(step, panel.value)
        if value is not None:
            found.setdefault(step.get("what", ""), []).append((float(_at(step, panel.against)), float(value)))
    return found
