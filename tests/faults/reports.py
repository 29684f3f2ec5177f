"""
Machine-readable reports of the long versions, and the section of docs/reliability.md made of them.

Each test under `make soak` leaves docs/soak/NAME.json: commit, machine, lengths, outcome, figures, and values
over time. `python -m tests.faults.reports` writes the section and its plots; a test compares the section.
"""

from __future__ import annotations

import datetime
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import describe

__all__ = [
    *("FOLDER", "PAGE", "Report", "begin", "drop", "figure", "finish", "note"),
    *("read", "sample", "section", "with_section"),
]

_ROOT: Final = Path(__file__).parents[2]
PAGE: Final = _ROOT / "docs" / "reliability.md"
FOLDER: Final = _ROOT / "docs" / "soak"
_PLACE: Final = re.compile(r"(<!-- soak -->\n).*?(<!-- end of soak -->)", re.DOTALL)
_MOST_LINES: Final = 20
_MOST_SAMPLES: Final = 400
_MOST_TEXT: Final = 300


@dataclass(slots=True)
class Report:
    """
    Report of one long run.

    Attributes:
        test: File and name of the test.
        guarantee: The sentence that it proves.
        began_at: When it began, in UTC.
        lengths: The numbers that it ran with, by the names of `lengths`.
        outcome: `passed` or `failed`.
        failure: Why it failed.
        figures: What was measured.
        series: Values over time: seconds since the beginning, and the value.
        lines: The last lines of its progress.
    """

    test: str
    guarantee: str
    began_at: str
    machine: Mapping[str, Any]
    took_s: float = 0.0
    outcome: str = "unfinished"
    failure: str | None = None
    lengths: dict[str, float] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


_current: Report | None = None
_began_s = 0.0


def begin(test: str, guarantee: str) -> None:
    """Begin the report of a test."""
    global _current, _began_s
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    _current = Report(test, " ".join(guarantee.split()), now, describe())
    _began_s = time.monotonic()


def drop() -> None:
    """Leave no report of the current test: it was skipped."""
    global _current
    _current = None


def note(text: str) -> None:
    """Keep a line of progress."""
    if _current is not None:
        _current.lines = [*_current.lines, text[:_MOST_TEXT]][-_MOST_LINES:]


def figure(**values: Any) -> None:
    """Keep figures; nothing under the short versions, which report nothing."""
    if _current is not None:
        _current.figures |= values


def sample(name: str, value: float, at_s: float | None = None) -> None:
    """Keep a value over time: of now, or of a moment of `time.monotonic`."""
    if _current is not None:
        moment_s = (time.monotonic() if at_s is None else at_s) - _began_s
        _current.series.setdefault(name, []).append((round(moment_s, 1), round(value, 3)))


def finish(failure: str | None, lengths: Mapping[str, float], folder: Path = FOLDER) -> Path | None:
    """Write the report of the test that `begin` named, and why it failed; None if there is no report."""
    global _current
    report, _current = _current, None
    if report is None:
        return None
    report.took_s = round(time.monotonic() - _began_s, 1)
    report.lengths = dict(lengths)
    report.outcome, report.failure = ("failed", failure[:_MOST_TEXT]) if failure else ("passed", None)
    report.series = {name: _thinned(points) for name, points in report.series.items()}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_file_name(report.test)}.json"
    path.write_text(json.dumps(asdict(report), indent=1) + "\n")
    return path


def read(folder: Path = FOLDER) -> dict[str, Report]:
    """The reports of a folder, by the names of their files."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        content["series"] = {
            name: [(at_s, value) for at_s, value in points] for name, points in content["series"].items()
        }
        found[path.stem] = Report(**content)
    return found


def section(reports: Mapping[str, Report]) -> str:
    """The section of the document about the reports, as Markdown."""
    if not reports:
        return "No report yet: `make soak` leaves one for each of its tests.\n"
    lines = ["| test | run | lengths | outcome | figures |", "|---|---|---|---|---|"]
    for name, report in reports.items():
        ran = f"{report.began_at[:10]}, {_duration(report.took_s)}, commit {report.machine['commit']}"
        outcome = report.outcome if report.failure is None else f"{report.outcome}: {report.failure}"
        cells = (
            f"[{report.test}](soak/{name}.json)",
            ran,
            _listed(report.lengths),
            outcome,
            _listed(report.figures),
        )
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    machine = list(reports.values())[-1].machine
    lines += ["", f"Machine: {machine['cpu']}, {machine['cores']} cores, CPython {machine['python']}.", ""]
    for name, report in reports.items():
        if report.series:
            lines += [f"![{report.test} over time](soak/{name}.svg)", ""]
    return "\n".join(lines)


def with_section(text: str, reports: Mapping[str, Report]) -> str:
    """The document with the section as it has to be."""
    body = section(reports)
    assert _PLACE.search(text) is not None, "the document has no place for the reports"
    return _PLACE.sub(lambda found: f"{found[1]}{body}{found[2]}", text)


def _file_name(test: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", test.lower().removeprefix("test_").replace(".py::test_", "-")).strip(
        "-"
    )


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    step = -(-len(points) // _MOST_SAMPLES)
    return points[::step] if step > 1 else points


def _duration(took_s: float) -> str:
    return f"{took_s:.0f} s" if took_s < 120 else f"{took_s / 60:.0f} min"


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in values.items()) or "-"


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")


def _draw(reports: Mapping[str, Report], folder: Path) -> None:
    from matplotlib import pyplot, rcParams

    for name, report in reports.items():
        if not report.series:
            continue
        # The same figures give the same file.
        rcParams.update({"svg.hashsalt": name, "svg.fonttype": "none"})
        count = len(report.series)
        figure_, axes = pyplot.subplots(
            1, count, figsize=(5 * count, 3.6), layout="constrained", squeeze=False
        )
        for axis, (title, points) in zip(axes[0], report.series.items(), strict=True):
            _plot(axis.plot, points)
            axis.set(title=title, xlabel="minutes", ylim=(0, None))
            axis.grid(visible=True, alpha=0.3)
        figure_.savefig(folder / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure_)


def _plot(plot: Callable[..., Any], points: Sequence[tuple[float, float]]) -> None:
    plot([at_s / 60 for at_s, _ in points], [value for _, value in points])


if __name__ == "__main__":
    found_reports = read()
    PAGE.write_text(with_section(PAGE.read_text(), found_reports))
    _draw(found_reports, FOLDER)
    print(f"{len(found_reports)} reports in {PAGE.relative_to(_ROOT)}")
