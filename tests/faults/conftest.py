"""Fixtures shared by several modules of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.hosts import Host
from tests.faults.shim import Shim


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shim]:
    """Steers the faults inside the server of `host`."""
    made = Shim(tmp_path_factory.mktemp("shim"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory, shim: Shim) -> Iterator[Host]:
    """A server on SQLite; every test leaves it as it was."""
    with Host(tmp_path_factory.mktemp("host"), shim.environment) as running:
        yield running
