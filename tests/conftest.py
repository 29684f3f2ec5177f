"""What holds for all tests: no haste in property tests, and another try where the machine stood still."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from tests.support.stillness import Watch, tries

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

_HERE = Path(__file__).parent
# Some frames of 20 ms: what is heard is no longer what was said.
_STILL_S = 0.05


def pytest_collection_finish() -> None:
    """
    Have the collector look at the thousands of tests no more.

    They are hundreds of thousands of objects, and to go through them holds up every loop for half a second.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """
    Run a test in real time again when it failed while the machine stood still.

    A tone has no gap, and a timer is on time, on a machine that runs. What fails though it ran has failed.
    """
    folder, below, *_ = (*item.path.relative_to(_HERE).parts, "")
    attempts = tries(folder, below, durable=item.get_closest_marker("durable") is not None)
    if attempts == 1:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(1, attempts + 1):
        with Watch() as watch:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if watch.longest_s < _STILL_S or attempt == attempts or not any(report.failed for report in reports):
            break
        item.warn(pytest.PytestWarning(f"failed and runs again: a standstill of {watch.longest_s:.2f} s"))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
