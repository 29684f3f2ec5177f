"""A real server between real endpoints of other makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.interop.peers import Baresip, Pjsua
from tests.sipp.exchange import FORWARDED, Exchange

MakePjsua = Callable[..., Pjsua]
MakeBaresip = Callable[..., Baresip]


HELD_IN_SILENCE = {"TRUNKLINE_HOLD_MUSIC": "none"}
"""Nobody but the other endpoint is to be heard."""


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
