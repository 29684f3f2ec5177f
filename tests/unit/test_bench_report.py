"""Output of `make bench` in its document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import report

COLUMNS = {"what": "what", "calls/s": "rate", "p99 ": "set_up_ms.p99"}
DOCUMENT = """# Figures
<!-- bench w1 -->
old
<!-- end of w1 -->
between
<!-- bench w2 -->
kept
<!-- end of w2 -->
"""


def result(name: str = "w1") -> dict[str, Any]:
    machine = {
        "when": "2026-11-22T10:00:00+00:00",
        "commit": "abc",
        "cpu": "EPYC",
        "cores": 4,
        "kernel": "6.18",
        "python": "3.11.7",
        "load_before": [0.5, 1, 1],
    }
    steps = [
        {"what": "bare relay", "rate": 50.0, "cpu_ms_per_call": 0.2, "set_up_ms": {"p99": 4.0}},
        {"what": "trunkline", "rate": 50.0, "cpu_ms_per_call": 4.0},
    ]
    return {"benchmark": name, "claim": "CPU per call", "machine": machine, "steps": steps}


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "figures.md"
    path.write_text(DOCUMENT)
    return path


def test_only_the_section_of_the_benchmark_is_written_anew(document: Path) -> None:
    report.write(document, result(), COLUMNS)
    text = document.read_text()
    assert "old" not in text
    assert "| bare relay | 50.0 | 4.0 |\n| trunkline | 50.0 | - |\n" in text
    assert "load of the machine before it 0.5" in text
    assert "between\n<!-- bench w2 -->\nkept\n<!-- end of w2 -->" in text


def test_writing_twice_changes_nothing(document: Path) -> None:
    report.write(document, result(), COLUMNS)
    once = document.read_text()
    report.write(document, result(), COLUMNS)
    assert document.read_text() == once


@pytest.mark.parametrize("machine", [{"commit": "abc-dirty"}, {"load_before": [2.5, 1, 1]}], ids=str)
def test_figures_of_a_changed_commit_or_a_busy_machine_are_not_written(
    document: Path, machine: dict[str, Any]
) -> None:
    figures = result()
    figures["machine"] |= machine
    report.write(document, figures, COLUMNS)
    assert document.read_text() == DOCUMENT


def test_a_benchmark_without_a_place_leaves_the_document_alone(document: Path) -> None:
    report.write(document, result("api"), COLUMNS)
    assert document.read_text() == DOCUMENT


def test_every_place_of_the_performance_page_is_that_of_a_benchmark() -> None:
    from benchmarks.bench import CLAIMS

    text = (Path(__file__).parents[2] / "docs" / "performance.md").read_text()
    places = [line.split()[2] for line in text.splitlines() if line.startswith("<!-- bench ")]
    assert set(places) >= {"w1", "w2", "w3", "growth"}
    assert set(places) <= set(CLAIMS)
    assert all(f"<!-- end of {name} -->" in text for name in places)
