"""Order, clocks and examples of all tests, and another try after a standstill of the machine."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from tests.support.examples import THOROUGH
from tests.support.report import RETRIED, RunReport
from tests.support.server_process import ServerProcess
from tests.support.shares import shares
from tests.support.stillness import Watch, tries
from tests.support.virtual_time import VirtualTimeLoop

ServerProcess.forked = True
_patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", _patient, max_examples=100)
# The same examples in each run: what failed fails again.
settings.register_profile("quick", _patient, max_examples=20, derandomize=True)
settings.load_profile("thorough" if THOROUGH else "quick")

_HERE = Path(__file__).parent
# Folders whose tests run on virtual time unless they say otherwise.
_VIRTUAL_TIME = {"contract", "integration"}
# About what a test takes, in seconds, where that is more than a moment.
_DURATION_S = {
    "faults": 3.5,
    "interop": 2.9,
    "sipp": 2.3,
    "native": 1.3,
    "acceptance": 0.65,
    "integration": 0.6,
    "security": 0.4,
    "contract": 0.05,
}
# Some frames of 20 ms: what is heard is no longer what was said.
_STILL_S = 0.05


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Select virtual time for tests that hold both ends of every connection, unless marked `real_time`."""
    folder, *below = _place(item)
    virtual = folder in _VIRTUAL_TIME and len(below) == 1 and item.get_closest_marker("real_time") is None
    return {"virtual": VirtualTimeLoop} if virtual else {"real": asyncio.new_event_loop}


def pytest_configure(config: pytest.Config) -> None:
    """Tell at the end where the time went; runners leave that to the process that started them."""
    # Nothing of a collection is garbage, and to look for it takes a good part of the time.
    gc.disable()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunReport())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests by the shares of the runners, each of which begins with what takes long."""
    runners = getattr(config, "workerinput", {}).get("workercount", 1)
    if runners > 1:
        items[:] = shares(items, runners, duration_s=_duration_s)


def _duration_s(item: pytest.Item) -> float:
    return _DURATION_S.get(_place(item)[0], 0.0)


def _place(item: pytest.Item) -> tuple[str, ...]:
    """Return the path of a test below `tests`; that of a client's test begins with `clients`."""
    folder, *below = item.path.relative_to(_HERE.parent).parts
    return tuple(below) if folder == _HERE.name else (folder, *below)


def pytest_collection_finish() -> None:
    """
    Exempt the thousands of tests from garbage collection, which then goes as in a server.

    They are hundreds of thousands of objects, and to go through them holds up every loop for half a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """
    Run a test in real time again when it failed while the machine stood still.

    A tone has no gap, and a timer is on time, on a machine that runs. What fails though it ran has failed.
    """
    folder, below, *_ = (*_place(item), "")
    attempts = tries(folder, below, durable=item.get_closest_marker("durable") is not None)
    if attempts == 1:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(1, attempts + 1):
        with Watch() as watch:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if watch.longest_s < _STILL_S or attempt == attempts or not any(report.failed for report in reports):
            break
        item.user_properties.append((RETRIED, round(watch.longest_s, 2)))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
