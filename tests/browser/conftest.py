"""
A browser, and a server with the sandbox that it has open.

The driver has an event loop of its own, so tests here are no coroutines, and the browser is closed with its
module.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.conftest import customers_of, start_server
from tests.acceptance.stage import Customer
from tests.support.browser import Browsing, open_browser
from tests.support.server_process import ServerProcess


@pytest.fixture(scope="module")
def browsing() -> Iterator[Browsing]:
    """Chromium."""
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the sandbox carrier."""
    yield from start_server(tmp_path_factory)


@pytest.fixture
def customer(server: ServerProcess) -> Customer:
    """A customer with money."""
    return customers_of(server)()


@pytest.fixture
def key(customer: Customer) -> str:
    """A key of the customer's that opens everything."""
    return customer.key_of("all", "*")
