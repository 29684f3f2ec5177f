"""Carriers on a bad day: what becomes of the calls, and how long it takes until the next gateway has them."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any, Final, Literal

import pytest

from tests.faults.lengths import SOAK, count, progress
from tests.faults.peers import Manner, Peer, answers, every_second, refuses, rubbish, silent
from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.dns_server import DnsServer
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

NUMBER: Final = "+919812345678"
VERBS: Final = [{"verb": "hangup"}]
OWED_S: Final = 4.0
"""Limit for a silent gateway until the next one gets the call."""
_SLACK: Final = 1.25 if SOAK else 8.0


@pytest.fixture(scope="module")
def names() -> Iterator[DnsServer]:
    with DnsServer() as running:
        running.negative_ttl = 1
        yield running


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory, names: DnsServer) -> Iterator[Exchange]:
    environment = {"TRUNKLINE_DNS_SERVERS": f"127.0.0.1:{names.port}"}
    with Exchange(tmp_path_factory.mktemp("carriers"), environment) as running:
        yield running


class Route:
    """A carrier of a good gateway and a bad one that is preferred, if there is one, and calls through it."""

    def __init__(self, exchange: Exchange, bad: str | None, good: Peer) -> None:
        self.exchange, self.good = exchange, good
        gateways = [*([bad] if bad is not None else []), f"udp:127.0.0.1:{good.port}"]
        self.sid = exchange.server.add_carrier("two", *gateways, outbound=True)

    def call(self) -> float:
        """Place one call, wait for its end, and give the seconds until the good gateway had it."""
        before, began = len(self.good.came("INVITE")), time.monotonic()
        body = {"from": FORWARDED, "to": NUMBER, "verbs": VERBS, "carrier_sid": self.sid}
        sid = str(self.exchange.api("POST", "/v1/calls", body)["call_sid"])
        call = self.exchange.wait_for_status(sid, "completed", "failed", "no-answer", "busy")
        assert (call["status"], call["hangup_cause"]) == ("completed", "NORMAL_CLEARING")
        came = self.good.came("INVITE")[before:]
        return came[0] - began if came else 0.0


@contextmanager
def route(exchange: Exchange, manner: Manner) -> Iterator[tuple[Route, Peer]]:
    """A route whose first gateway has a manner, with that gateway."""
    with Peer(manner) as bad, Peer(answers) as good:
        yield Route(exchange, f"udp:127.0.0.1:{bad.port}", good), bad
        exchange.assert_clean()


@pytest.mark.parametrize("manner", [silent, rubbish(7)], ids=["silent", "rubbish"])
def test_a_gateway_that_makes_no_sense_costs_four_seconds_once(exchange: Exchange, manner: Manner) -> None:
    """A gateway that is silent or answers nonsense is given up within 4 s, and then has a cooldown."""
    with route(exchange, manner) as (carrier, bad):
        first_s = carrier.call()
        progress(f"the next gateway had the call after {first_s:.2f} s")
        assert 0.8 * OWED_S < first_s < OWED_S * _SLACK
        asked = len(bad.came("INVITE"))
        for _ in range(count("CARRIER_CALLS", short=2, long=20)):
            carrier.call()
        assert len(bad.came("INVITE")) == asked, "a gateway that failed is not asked while it rests"


def test_every_second_invite_unanswered_costs_no_call(exchange: Exchange) -> None:
    """A gateway that leaves every second INVITE unanswered loses no call: the repetition is answered."""
    calls = count("CARRIER_CALLS", short=3, long=100)
    with route(exchange, every_second(answers)) as (carrier, flaky):
        for _ in range(calls):
            carrier.call()
        assert len(flaky.came("INVITE")) >= 2 * calls
        assert carrier.good.came("INVITE") == [], "the other gateway was not needed"


def test_a_storm_of_503_moves_every_call_at_once(exchange: Exchange) -> None:
    """A gateway that refuses everything with 503 loses no call, and no call waits for it."""
    with route(exchange, refuses(503)) as (carrier, bad):
        waits_s = [carrier.call() for _ in range(count("CARRIER_CALLS", short=4, long=50))]
        progress(f"503: at most {max(waits_s):.2f} s")
        assert max(waits_s) < 1.0 * _SLACK
        assert 1 <= len(bad.came("INVITE")) < len(waits_s), "a gateway that refuses rests"


def test_a_gateway_that_asks_for_a_rest_gets_it(exchange: Exchange) -> None:
    """A 503 with Retry-After keeps calls away from its gateway for that time; then they come back."""
    rest_s = 3.0
    with route(exchange, refuses(503, [("Retry-After", "3")])) as (carrier, bad):
        began = time.monotonic()
        carrier.call()
        bad.manner = answers
        while len(bad.came("INVITE")) == 1:
            carrier.call()
            assert time.monotonic() - began < 120.0, "it was never asked again"
        again_s = bad.came("INVITE")[1] - bad.came("INVITE")[0]
        progress(f"asked again after {again_s:.1f} s")
        assert again_s >= rest_s


def test_a_gateway_that_is_not_there_costs_no_time(exchange: Exchange) -> None:
    """A gateway whose machine is not there, or whose connections are reset, costs a call less than 4 s."""
    with ExitStack() as stack:
        good = stack.enter_context(Peer(answers))
        for name, bad in (
            ("nobody by UDP", f"udp:127.0.0.1:{free_port()}"),
            ("nobody by TCP", f"tcp:127.0.0.1:{free_port()}"),
            ("resets", f"tcp:127.0.0.1:{stack.enter_context(resetting())}"),
        ):
            waited_s = Route(exchange, bad, good).call()
            progress(f"{name}: {waited_s:.2f} s")
            assert waited_s < OWED_S * _SLACK, name
    exchange.assert_clean()


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_calls_leave_a_dead_port_at_once(exchange: Exchange, transport: str) -> None:
    """
    Calls placed together to a port with no listener leave it together, by ICMP errors or refusals of TCP.
    """
    with Peer(answers) as good:
        dead = f"127.0.0.1:{free_port()}"
        carrier = Route(exchange, f"{transport}:{dead}", good)
        body = {"from": FORWARDED, "to": NUMBER, "verbs": VERBS, "carrier_sid": carrier.sid}
        # All are placed before the first one fails and the gateway rests.
        sids = [str(exchange.api("POST", "/v1/calls", body)["call_sid"]) for _ in range(10)]
        assert {exchange.wait_for_status(sid, "completed", "failed")["status"] for sid in sids} == {
            "completed"
        }
        tried = 0
        for sid in sids:
            invites = _invites(exchange, sid)
            lost = [at for at, peer in invites if peer == dead]
            tried += bool(lost)
            # Silence would be known after 4 s, when the fourth has been sent, and by TCP after as long.
            assert len(lost) < 4, invites
            assert (invites[-1][0] - invites[0][0]).total_seconds() < OWED_S, invites
        assert tried, "no call was placed to the dead port"
        if transport == "udp":
            told = [line for line in exchange.server.log().splitlines() if f"{dead} does not receive" in line]
            assert len([line for line in told if "INVITE: Connection refused" in line]) == tried
    exchange.assert_clean()


def _invites(exchange: Exchange, call_sid: str) -> list[tuple[datetime, str]]:
    """When and where to the server sent each INVITE of a call, by its trace."""
    messages = exchange.api("GET", f"/v1/calls/{call_sid}/trace")["messages"]
    sent = [one for one in messages if one["direction"] == "out" and one["message"].startswith("INVITE ")]
    return [(datetime.fromisoformat(one["at"]), one["peer"]) for one in sent]


@pytest.mark.parametrize("mode", ["well", "silent"], ids=["NXDOMAIN", "dead"])
def test_a_name_that_leads_nowhere_costs_its_call_some_seconds_and_others_nothing(
    exchange: Exchange, names: DnsServer, mode: Literal["well", "silent"]
) -> None:
    """A gateway with an unknown name, or dead name servers, is passed over in 4 s; others do not wait."""
    names.mode = mode
    try:
        with Peer(answers) as good, Peer(answers) as other:
            named = Route(exchange, f"udp:gone-{mode}.test:5060", good)
            plain = Route(exchange, None, other)
            waited: list[float] = []
            slow = threading.Thread(target=lambda: waited.append(named.call()))
            slow.start()
            beside_s = plain.call()
            slow.join()
            progress(f"{mode}: {waited[0]:.2f} s, beside it {beside_s:.2f} s")
            assert waited[0] < OWED_S * _SLACK
            assert beside_s < 0.5 * _SLACK
    finally:
        names.mode = "well"


@contextmanager
def resetting() -> Iterator[int]:
    """A server that takes connections and resets them as soon as something comes."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)

        def serve() -> None:
            while not over.is_set():
                try:
                    connection, _ = listening.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.settimeout(5.0)
                    connection.recv(1)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            over.set()
            thread.join()


CHALLENGE: Final = [("WWW-Authenticate", 'Digest realm="r", nonce="n", algorithm=MD5, qop="auth"')]


@pytest.mark.parametrize(
    ("manner", "state"),
    [
        (refuses(401, CHALLENGE), "rejected"),
        (refuses(403), "rejected"),
        (refuses(503), "unreachable"),
        pytest.param(silent, "unreachable", marks=pytest.mark.long(reason="waits out timer F, 32 s")),
    ],
    ids=["challenged for ever", "forbidden", "unavailable", "silent"],
)
def test_a_registrar_that_refuses_is_asked_seldom_and_told_of(
    exchange: Exchange, manner: Manner, state: str
) -> None:
    """
    A registrar that challenges for ever, forbids, is full or silent gets few requests; its trunk says so.
    """
    with Peer(manner) as registrar:
        path = "/v1/trunk-portal/carriers"
        fields = {
            "name": "registered",
            "trunk_type": "reg",
            "requires_register": True,
            "register_username": "user",
            "register_password": "secret",
            "registrars": [f"127.0.0.1:{registrar.port}"],
        }
        sid = exchange.api("POST", path, fields)["carrier_sid"]
        shown: dict[str, Any] = {}

        def told() -> bool:
            shown.update(exchange.api("GET", f"{path}/{sid}")["register_status"])
            return str(shown["state"]) == state

        assert wait_until(told, PATIENCE_S), shown
        assert shown["reason"]
        asked = {message.first("cseq") for _, message in list(registrar.heard)}
        assert len(asked) <= 3, "it is not asked again at once"
        deleted = exchange.server.request("DELETE", f"{path}/{sid}", exchange.account.api_key)
        assert deleted.status == 204
