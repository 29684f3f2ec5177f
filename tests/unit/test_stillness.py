"""Excuse of a failed test: a machine that stood still, and nothing that the process did itself."""

from __future__ import annotations

import pytest

from tests.support.stillness import standstill_s, tries


@pytest.mark.parametrize(
    ("late_s", "used_s", "still_s"),
    [
        pytest.param(0.5, 0.0, 0.5, id="kept-from-running"),
        pytest.param(0.5, 0.2, 0.5, id="mostly-kept-from-running"),
        pytest.param(0.5, 0.25, 0.0, id="half-of-it-used"),
        pytest.param(0.5, 0.5, 0.0, id="busy-by-itself"),
        pytest.param(0.5, 1.0, 0.0, id="busy-on-two-processors"),
    ],
)
def test_time_that_the_process_used_is_no_standstill(late_s: float, used_s: float, still_s: float) -> None:
    assert standstill_s(late_s, used_s) == still_s


@pytest.mark.parametrize(
    ("folder", "below", "durable", "count"),
    [
        ("acceptance", "test_media.py", False, 3),
        ("integration", "test_recordings.py", False, 3),
        ("interop", "test_rtcp.py", False, 3),
        ("sipp", "test_timers.py", False, 3),
        ("integration", "test_messages_killed.py", True, 1),
        ("integration", "store", False, 1),
        ("integration", "webhooks", False, 1),
        ("contract", "test_contract.py", False, 1),
        ("unit", "api", False, 1),
    ],
)
def test_only_what_runs_in_real_time_has_another_try(
    folder: str, below: str, durable: bool, count: int
) -> None:
    assert tries(folder, below, durable=durable) == count
