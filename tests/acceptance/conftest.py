"""
The server as its customers have it, and their clients.

One server stands for all tests of a process. It is started by its command in a folder of its own, with the
sandbox carrier, and may connect to this machine: webhooks and agents of the tests are there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest

from tests.acceptance.clients.agent import Agent
from tests.acceptance.clients.http import Api
from tests.acceptance.clients.phone import Phone
from tests.acceptance.clients.webhooks import Receiver
from tests.acceptance.stage import Customer, Line, NewCustomer, open_line
from tests.support.ports import free_port
from tests.support.server_process import ServerProcess

_SANDBOX = {"TRUNKLINE_SANDBOX_CARRIER": "1", "TRUNKLINE_DRAIN_S": "1"}


def start_server(tmp_path_factory: pytest.TempPathFactory, **settings: str) -> Iterator[ServerProcess]:
    """Start a server with a sandbox carrier; it must end well, and without a traceback in its log."""
    listen = {"TRUNKLINE_SANDBOX_LISTEN": f"udp:127.0.0.1:{free_port()}"}
    environment = {**_SANDBOX, **listen, **{f"TRUNKLINE_{name}": value for name, value in settings.items()}}
    folder = tmp_path_factory.mktemp("acceptance") / "server"
    # Several servers of a process share its span of ports.
    server = ServerProcess(folder, environment=environment, rtp_ports=160)
    with server.starting():
        yield server
    assert server.stop() == 0, server.log()[-4000:]
    assert "Traceback" not in server.log(), server.log()[-8000:]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The server of most tests."""
    yield from start_server(tmp_path_factory)


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the settings that it is shipped with: limits of requests, and public addresses only."""
    yield from start_server(tmp_path_factory, TRUSTED_SOURCES="", ALLOW_PRIVATE_DESTINATIONS="0")


def customers_of(server: ServerProcess) -> NewCustomer:
    """Return the function that makes customers of a server."""

    def make(balance_inr: int = 1000) -> Customer:
        account = server.add_account("Shop", balance_inr)
        return Customer(server, account.account_sid, account.api_key)

    return make


@pytest.fixture(scope="session")
def new_customer(server: ServerProcess) -> NewCustomer:
    """Make a customer."""
    return customers_of(server)


@pytest.fixture(scope="module")
def customer(new_customer: NewCustomer) -> Customer:
    """The customer of the tests of a module."""
    return new_customer()


@pytest.fixture(scope="module")
def stranger(new_customer: NewCustomer) -> Customer:
    """Another customer."""
    return new_customer()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """Connections of a test."""
    async with aiohttp.ClientSession() as opened:
        yield opened


@pytest.fixture
async def api(session: aiohttp.ClientSession, server: ServerProcess, customer: Customer) -> Api:
    """The API for the customer's platform key."""
    return Api(session, server.url, customer.key)


@pytest.fixture
async def phone(server: ServerProcess) -> AsyncIterator[Phone]:
    """Telephones of a test."""
    async with Phone(("127.0.0.1", server.sip_port)) as ready:
        yield ready


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Web server of the customer."""
    async with Receiver() as ready:
        yield ready


@pytest.fixture
async def agent() -> AsyncIterator[Agent]:
    """Voice agent of the customer."""
    async with Agent() as ready:
        yield ready


@pytest.fixture
async def line(api: Api, phone: Phone) -> AsyncIterator[Line]:
    """A number on a carrier of the customer's own, whose gateway the telephones are."""
    opened = await open_line(api, phone)
    yield opened
    # Later calls of the account are not tried by a carrier that is gone.
    await api.patch(f"/v1/trunk-portal/carriers/{opened.carrier_sid}", {"is_active": False})


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server without the sandbox, and so without any carrier of the platform."""
    yield from start_server(tmp_path_factory, SANDBOX_CARRIER="0")
