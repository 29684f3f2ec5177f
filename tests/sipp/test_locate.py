"""Trunks that are names: their servers one after another, rests, probes, and a name server on a bad day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.dns_server import DnsServer
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load

NUMBER = "+919812345678"
PAUSE = [{"verb": "pause", "length": 1}, {"verb": "hangup"}]


@pytest.fixture(scope="module")
def names() -> Iterator[DnsServer]:
    """The name server of this module's server."""
    with DnsServer() as running:
        running.negative_ttl = 1
        yield running


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory, names: DnsServer) -> Iterator[Exchange]:
    """A server that asks our name server, and pings often."""
    environment = {
        "TRUNKLINE_DNS_SERVERS": f"127.0.0.1:{names.port}",
        "TRUNKLINE_OPTIONS_INTERVAL_S": "1",
    }
    with Exchange(tmp_path_factory.mktemp("locate"), environment) as running:
        yield running


class Trunk:
    """A carrier that is one name, with as many servers as are wanted, the preferred first."""

    def __init__(self, exchange: Exchange, names: DnsServer, name: str, servers: int, **more: Any) -> None:
        self.exchange = exchange
        self.name = name
        self.ports = [free_port() for _ in range(servers)]
        names.add(f"{name}.test", "NAPTR", f'10 10 "s" "SIP+D2U" "" _sip._udp.{name}.test.')
        records = (f"{rank} 0 {port} host.{name}.test." for rank, port in enumerate(self.ports, 1))
        names.add(f"_sip._udp.{name}.test", "SRV", *records)
        names.add(f"host.{name}.test", "A", "127.0.0.1")
        self.gateways = more.pop("gateways", (f"auto:{name}.test",))
        self.sid = exchange.server.add_carrier(name, *self.gateways, outbound=True, **more)

    def place(self, **more: Any) -> str:
        body = {"from": FORWARDED, "to": NUMBER, "verbs": PAUSE, "carrier_sid": self.sid, **more}
        return str(self.exchange.api("POST", "/v1/calls", body)["call_sid"])

    def invites(self, call_sid: str) -> list[int]:
        """The ports the call's INVITEs went to, each transaction once."""
        trace = self.exchange.api("GET", f"/v1/calls/{call_sid}/trace")
        found: dict[str, int] = {}
        for entry in trace["messages"] if isinstance(trace, dict) else trace:
            if entry["direction"] == "out" and entry["message"].startswith("INVITE"):
                branch = entry["message"].partition("branch=")[2].partition(";")[0].partition("\r")[0]
                found[branch] = int(entry["peer"].rpartition(":")[2])
        return list(found.values())


def test_a_dead_server_is_passed_over(clean: Exchange, names: DnsServer) -> None:
    trunk = Trunk(clean, names, "dead", 2)
    callee = clean.callee(port=trunk.ports[1])
    sid = trunk.place()
    call = clean.wait_for_status(sid, "completed")
    clean.finish(callee)
    assert call["hangup_cause"] == "NORMAL_CLEARING"
    assert trunk.invites(sid) == trunk.ports, "each server had one INVITE, in their order"
    # The dead one rests: the next call goes to the other at once.
    callee = clean.callee(port=trunk.ports[1])
    sid = trunk.place()
    clean.wait_for_status(sid, "completed")
    clean.finish(callee)
    assert trunk.invites(sid) == trunk.ports[1:]


def test_503_of_one_server_leads_to_the_next(clean: Exchange, names: DnsServer) -> None:
    trunk = Trunk(clean, names, "full", 3)
    first = clean.callee("uas_reject_503.xml", port=trunk.ports[0])
    second = clean.callee("uas_reject_503.xml", port=trunk.ports[1])
    third = clean.callee(port=trunk.ports[2])
    sid = trunk.place()
    clean.wait_for_status(sid, "completed")
    clean.finish(first, second, third)
    assert trunk.invites(sid) == trunk.ports


def test_a_server_that_answers_when_another_has_the_call_is_hung_up(
    clean: Exchange, names: DnsServer
) -> None:
    trunk = Trunk(clean, names, "late", 2)
    late = clean.callee("uas_silent.xml", port=trunk.ports[0])
    prompt = clean.callee(port=trunk.ports[1])
    sid = trunk.place(verbs=[{"verb": "pause", "length": 4}, {"verb": "hangup"}])
    call = clean.wait_for_status(sid, "completed")
    clean.finish(prompt, late)
    assert call["hangup_cause"] == "NORMAL_CLEARING"
    assert trunk.invites(sid) == trunk.ports


def test_busy_of_one_server_is_the_word_of_all(clean: Exchange, names: DnsServer) -> None:
    trunk = Trunk(clean, names, "busy", 2)
    first = clean.callee("uas_busy.xml", port=trunk.ports[0])
    second = clean.callee(port=trunk.ports[1])
    sid = trunk.place()
    call = clean.wait_for_status(sid, "busy")
    clean.finish(first)
    assert call["sip_status"] == 486
    assert trunk.invites(sid) == trunk.ports[:1]
    assert second.stop().successful == 0


def test_when_all_servers_of_a_gateway_failed_the_next_gateway_has_its_turn(
    clean: Exchange, names: DnsServer
) -> None:
    port = free_port()
    trunk = Trunk(clean, names, "both", 2, gateways=("auto:both.test", f"udp:127.0.0.1:{port}"))
    rejecting = [clean.callee("uas_reject_503.xml", port=server) for server in trunk.ports]
    callee = clean.callee(port=port)
    sid = trunk.place()
    clean.wait_for_status(sid, "completed")
    clean.finish(*rejecting, callee)
    assert trunk.invites(sid) == [*trunk.ports, port]


def test_500_leads_to_the_next_gateway_and_to_no_server_of_the_same(
    clean: Exchange, names: DnsServer
) -> None:
    port = free_port()
    trunk = Trunk(clean, names, "error", 2, gateways=("auto:error.test", f"udp:127.0.0.1:{port}"))
    first = clean.callee("uas_500.xml", port=trunk.ports[0])
    callee = clean.callee(port=port)
    sid = trunk.place()
    clean.wait_for_status(sid, "completed")
    clean.finish(first, callee)
    assert trunk.invites(sid) == [trunk.ports[0], port]


def test_a_gateway_that_is_pinged_goes_down_and_comes_back(clean: Exchange, names: DnsServer) -> None:
    port = free_port()
    clean.server.add_carrier("pinged", f"udp:127.0.0.1:{port}", outbound=True, gateway_send_options_ping=True)

    def became(state: str) -> bool:
        return wait_until(lambda: f"(udp:127.0.0.1:{port} of pinged) is {state}" in clean.server.log(), 15)

    clean.finish(clean.callee("uas_options.xml", port=port))
    assert became("up, and was unknown")
    assert became("down, and was up"), "it answers no more"
    assert clean.gateways("down") >= 1
    clean.finish(clean.callee("uas_options.xml", port=port))
    assert became("up, and was down"), "it is back"


def test_a_name_server_that_is_dead_costs_calls_to_addresses_nothing(
    clean: Exchange, names: DnsServer
) -> None:
    trunk = Trunk(clean, names, "unknown", 1)
    port = free_port()
    plain = clean.server.add_carrier("plain", f"udp:127.0.0.1:{port}", outbound=True)
    names.mode = "silent"
    try:
        lost = trunk.place()
        callee = clean.callee(load=Load(3), port=port)
        body = {"from": FORWARDED, "to": NUMBER, "verbs": PAUSE, "carrier_sid": plain}
        sids = [str(clean.api("POST", "/v1/calls", body)["call_sid"]) for _ in range(3)]
        for sid in sids:
            clean.wait_for_status(sid, "completed")
        clean.finish(callee)
        call = clean.wait_for_status(lost, "failed")
        assert call["answered_at"] is None
    finally:
        names.mode = "well"


def test_a_caller_is_known_by_the_servers_its_name_leads_to(clean: Exchange, names: DnsServer) -> None:
    names.add("_sip._udp.callers.test", "SRV", "1 0 5060 far.callers.test.")
    names.add("far.callers.test", "A", "127.0.0.2")
    stranger = clean.caller("uac_refused.xml", port=free_port(), extra="-i 127.0.0.2")
    clean.finish(stranger)
    clean.server.add_carrier("callers", "auto:callers.test", inbound=True)
    assert wait_until(lambda: names.count("far.callers.test A") >= 1, 10)
    wait_until(lambda: False, 0.5)  # The answer is on its way to the directory.
    callee = clean.callee()
    known = clean.caller("uac.xml", port=free_port(), extra="-i 127.0.0.2")
    clean.finish(known, callee)
