"""
A browser, and a server with the sandbox that it has open.

The driver has an event loop of its own, so tests here are no coroutines, and the browser is closed with its
module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.acceptance.conftest import customers_of, start_server
from tests.acceptance.stage import Customer
from tests.browser.pages import addresses_of
from tests.support.browser import Browsing, open_browser
from tests.support.server_process import ServerProcess, wait_until


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


@pytest.fixture(scope="session")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose only account is its operator's, so that one key opens all of its pages."""
    yield from start_server(tmp_path_factory)


@pytest.fixture(scope="session")
def owner(own_server: ServerProcess) -> Customer:
    """The account of the server, with its key."""

    def printed(label: str) -> str:
        line = next(text for text in own_server.log().splitlines() if text.strip().startswith(label))
        return line.strip().removeprefix(label).split()[0].rstrip(",")

    # It is ready before it prints what it made.
    assert wait_until(lambda: "  API key " in own_server.log()), own_server.log()
    return Customer(own_server, printed("demo account"), printed("API key"))


@pytest.fixture(scope="session")
def addresses(owner: Customer) -> Mapping[str, str]:
    """Address of each page, of an account that has one of everything."""
    return addresses_of(owner)
