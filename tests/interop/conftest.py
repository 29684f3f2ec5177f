"""A real server between real endpoints of other makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop.peers import Baresip, Pjsua
from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.server_process import ServerProcess

MakePjsua = Callable[..., Pjsua]
MakeBaresip = Callable[..., Baresip]


HELD_IN_SILENCE = {"TRUNKLINE_HOLD_MUSIC": "none"}
"""Nobody but the other endpoint is to be heard."""


CACHE = Path(__file__).parents[2] / ".cache"
"""Folder of the environments of other makers' libraries."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """
    A server as it is after its first start: with a sandbox carrier, and a demo account.

    `caller` is the number of the account, `callee` answers and echoes, and `channel` sends messages.
    """

    process: ServerProcess
    key: str
    account_sid: str
    channel: str
    caller: str = "+918047000001"
    callee: str = "+919800000001"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Arguments of a program that uses the API as a customer does."""
        return (self.process.url, self.account_sid, self.key, self.caller, self.callee, self.channel)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """A server that programs of customers use; its log has no traceback in the end."""
    environment = {
        "TRUNKLINE_SANDBOX_CARRIER": "1",
        "TRUNKLINE_SANDBOX_LISTEN": "udp:127.0.0.1:0",
        "TRUNKLINE_DRAIN_S": "1",
    }
    process = ServerProcess(tmp_path, environment=environment)
    process.start()
    try:
        key = process.first_key()
        account_sid = process.request("GET", "/v1/account", key).data["account_sid"]
        channel = process.request("GET", "/api/v1/channel", key).data["number"]
        yield Sandbox(process, key, account_sid, channel)
    finally:
        process.stop()
    assert "Traceback" not in process.log()


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    """One server for the tests of a module."""
    with Exchange(tmp_path_factory.mktemp("interop"), HELD_IN_SILENCE) as running:
        yield running


@pytest.fixture
def clean(exchange: Exchange) -> Iterator[Exchange]:
    """The module's server; after the test nothing of its calls may be left over."""
    yield exchange
    exchange.assert_clean()


@pytest.fixture
def pjsua(clean: Exchange, tmp_path: Path) -> Iterator[MakePjsua]:
    """Make PJSIP endpoints, which end with the test."""
    with ExitStack() as stack:

        def make(user: str, **options: Any) -> Pjsua:
            return stack.enter_context(Pjsua(tmp_path / user, user, **options))

        yield make


@pytest.fixture
def baresip(clean: Exchange, tmp_path: Path) -> Iterator[MakeBaresip]:
    """Make baresips, which end with the test."""
    with ExitStack() as stack:

        def make(user: str, **options: Any) -> Baresip:
            return stack.enter_context(Baresip(tmp_path / user, user, **options))

        yield make


def number(exchange: Exchange, transport: str = "udp") -> str:
    """The forwarded number as a URI that leads to the server by a transport."""
    port = exchange.server.tls_port if transport == "tls" else exchange.server.sip_port
    suffix = "" if transport == "udp" else f";transport={transport}"
    return f"sip:{FORWARDED}@127.0.0.1:{port}{suffix}"


def connect(exchange: Exchange, caller: Pjsua, callee: Pjsua, transport: str = "udp") -> None:
    """Call one PJSIP endpoint from the other, and wait until both hear each other."""
    caller.do("call", call="c", uri=number(exchange, transport))
    callee.wait("incoming", call="in1")
    callee.do("answer", call="in1", code=180)
    caller.wait("state", state="EARLY", code=180)
    callee.do("answer", call="in1")
    caller.wait("state", call="c", state="CONFIRMED")
    caller.wait_for_audio("c")
    callee.wait_for_audio("in1")


def hang_up(side: Pjsua, call: str, other: Pjsua, other_call: str) -> None:
    """End a call from one side, and wait until both have heard."""
    side.do("hangup", call=call)
    side.wait("state", call=call, state="DISCONNECTED")
    other.wait("state", call=other_call, state="DISCONNECTED")


def reach(exchange: Exchange, port: int, transport: str = "udp", **policy: Any) -> None:
    """Route calls to the forwarded number to an endpoint, over a trunk of its own."""
    exchange.server.add_carrier(f"peer-{port}", f"{transport}:127.0.0.1:{port}", outbound=True, **policy)
    exchange.bind({"target": "forward", "forward_to": f"sip:callee@127.0.0.1:{port}"})


def trust(exchange: Exchange, port: int, transport: str = "udp", **policy: Any) -> None:
    """Accept calls from an endpoint, over a trunk of its own."""
    exchange.server.add_carrier(f"caller-{port}", f"{transport}:127.0.0.1:{port}", inbound=True, **policy)
