"""The documents about the tests under faults are true."""

from __future__ import annotations

from tests.faults.sentences import PAGE, page


def test_every_sentence_is_listed() -> None:
    """Every test under faults says what it proves, and docs/reliability-tests.md lists exactly those."""
    wanted = page()
    silent = [line for line in wanted.splitlines() if line.startswith("|  |")]
    assert silent == [], "a test's docstring is the sentence that it proves"
    assert PAGE.read_text() == wanted, "run python -m tests.faults.sentences"
