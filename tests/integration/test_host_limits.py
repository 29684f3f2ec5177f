"""Limits of the process, and the gate that refuses calls when they are low."""

from __future__ import annotations

import logging
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from callcontrol.calls.aio.host_limits import CALL_DESCRIPTORS, CallGate, HostLimits
from callcontrol.database.aio.database import Database
from callcontrol.errors import ServiceUnavailable


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    """As few as leave room for some calls."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = len(os.listdir("/proc/self/fd")) + 64 + 30
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    yield limit
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_calls_that_begin_at_once_do_not_use_up_the_descriptors(few_descriptors: int) -> None:
    limits = HostLimits()
    begun = 0
    while limits.lack() is None:
        limits.begun()
        begun += 1
    free = few_descriptors - len(os.listdir("/proc/self/fd"))
    assert 0 < begun <= free * 0.75 / CALL_DESCRIPTORS
    assert limits.lack() == "descriptors"


def _address_space_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


async def test_a_small_address_space_keeps_calls_out() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    used_bytes = _address_space_bytes()
    try:
        resource.setrlimit(resource.RLIMIT_AS, (used_bytes * 21 // 20, before[1]))
        assert HostLimits().lack() == "memory"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert HostLimits().lack() is None


async def test_the_gate_counts_whom_it_keeps_out_and_tells_the_log_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    database = cast(Database, SimpleNamespace(unwritable=True))
    gate = CallGate(database)
    with caplog.at_level(logging.WARNING):
        assert not gate.admits()
        with pytest.raises(ServiceUnavailable, match="database"):
            gate.check()
        assert gate.refused == {"database": 2}
        database.unwritable = False
        assert gate.admits() and gate.lacks() is None
    assert [record.getMessage() for record in caplog.records] == [
        "rejecting new calls: the database is not taking writes",
        "accepting new calls again",
    ]
