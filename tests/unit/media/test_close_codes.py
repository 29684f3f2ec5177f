"""Meaning of close codes."""

import pytest

from media.streams.model import closed_by_agent


@pytest.mark.parametrize(
    ("code", "reported", "abnormal", "drain"),
    [
        (1000, 1000, False, True),
        (0, 1005, False, True),
        (1005, 1005, False, True),
        (4000, 4000, False, False),
        (4099, 4099, False, False),
        (3000, 3000, False, True),
        (4100, 4100, False, True),
        (4999, 4999, False, True),
        (1001, 1001, True, False),
        (1002, 1002, True, False),
        (1011, 1011, True, False),
        (1012, 1012, True, False),
        (1014, 1014, True, False),
        (5000, 5000, True, False),
    ],
)
def test_each_kind_of_code(code: int, reported: int, abnormal: bool, drain: bool) -> None:
    closed = closed_by_agent(code, "words")
    assert (closed.code, closed.abnormal, closed.drain, closed.reason) == (reported, abnormal, drain, "words")
