"""The reports of the long versions, and the section of docs/reliability.md made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import reports


def test_the_document_shows_the_last_reports() -> None:
    """docs/reliability.md shows the last report of each long run, as `make soak` left it."""
    text = reports.PAGE.read_text()
    assert text == reports.with_section(text, reports.read()), "run python -m tests.faults.reports"


def test_a_report_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report keeps what ran, with which lengths, what was measured, and why it failed."""
    monkeypatch.setattr(reports, "describe", lambda: {"commit": "abc", "cpu": "x", "cores": 2, "python": "3"})
    reports.begin("test_soak.py::test_mixed[sqlite]", "Nothing\n    is lost.")
    for number in range(1000):
        reports.note(f"call {number}")
        reports.sample("memory, MiB", number)
    reports.figure(calls=1000, lost=0.5)
    path = reports.finish("AssertionError: one | lost", {"S": 8.0}, tmp_path)
    assert path is not None and path.name == "soak-mixed-sqlite.json"
    (report,) = reports.read(tmp_path).values()
    assert (report.guarantee, report.outcome) == ("Nothing is lost.", "failed")
    assert (report.lines[-1], len(report.lines)) == ("call 999", 20)
    points = report.series["memory, MiB"]
    assert len(points) <= 400 and points[0][1] == 0.0 and points[-1][1] > 990
    shown = reports.section({"soak-mixed-sqlite": report})
    assert "S 8 | failed: AssertionError: one / lost | calls 1000, lost 0.5 |" in shown
    assert "![test_soak.py::test_mixed[sqlite] over time](soak/soak-mixed-sqlite.svg)" in shown
    assert reports.finish(None, {}, tmp_path) is None, "a report is written once"
