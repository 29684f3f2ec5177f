"""The documents about the tests under faults are true."""

from __future__ import annotations

import re

from tests.faults import sentences
from tests.faults.sentences import PAGE, page

_OF_CLUSTERS = PAGE.with_name("cluster.md")
_TESTS = PAGE.parents[1] / "tests"


def test_every_sentence_is_listed() -> None:
    """Every test under faults says what it proves, and docs/reliability-tests.md lists exactly those."""
    wanted = page()
    silent = [line for line in wanted.splitlines() if line.startswith("|  |")]
    assert silent == [], "a test's docstring is the sentence that it proves"
    assert PAGE.read_text() == wanted, "run python -m tests.faults.sentences"


def test_the_tests_of_clusters_exist() -> None:
    """Every test that docs/cluster.md names for a guarantee exists."""
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", _OF_CLUSTERS.read_text())
    assert len(named) > 20
    for file, name in named:
        assert name in dict(sentences.tests_of(_TESTS / file)), (file, name)
