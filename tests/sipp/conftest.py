"""A real server and real SIPp peers for the tests of this directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sipp.exchange import Exchange
from tests.support.sipp_run import SIPP


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    missing = pytest.mark.skip(reason="SIPp is not installed (Debian: sip-tester)")
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.sipp)
            if SIPP is None:
                item.add_marker(missing)


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    """One server for the tests of a module, with trunks for SIPp on either side."""
    with Exchange(tmp_path_factory.mktemp("sipp")) as running:
        yield running


@pytest.fixture
def clean(exchange: Exchange) -> Iterator[Exchange]:
    """The module's server; after the test nothing of its calls may be left over."""
    yield exchange
    exchange.assert_clean()


def load_calls() -> int:
    """Return the number of calls of the load test: TRUNKLINE_SIPP_CALLS, or 100."""
    return int(os.environ.get("TRUNKLINE_SIPP_CALLS", "100"))
