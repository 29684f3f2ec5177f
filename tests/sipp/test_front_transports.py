"""Carriers over TCP and TLS by way of a real Kamailio, which speaks TCP with its servers."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.certificates import Authority, Issued
from tests.support.kamailio import Front, needs_kamailio
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load, Sipp
from tests.support.tls_relay import TlsRelay
from tests.support.waiting import PATIENCE_S

# `make test` installs what is missing here; a run without make goes on with the rest, and says so.
pytestmark = needs_kamailio

# No carrier has the address of a node, which is 127.0.0.1.
CALLERS = "127.0.0.21"
CALLEES = "127.0.0.22"
CALLED = "+919812345678"
SHORT = Load(pause_ms=300)


@dataclass
class Fronted:
    """A server behind a Kamailio, with carriers that speak TCP and TLS to that."""

    exchange: Exchange
    front: Front
    authority: Authority

    def call_by_tls(self, source: str, scenario: str, proof: Issued | None = None) -> Sipp:
        """Run a caller over TLS from an address, with a certificate or without; it must end as it says."""
        context = ssl.create_default_context(cafile=str(self.authority.file))
        if proof is not None:
            context.load_cert_chain(proof.certificate, proof.key)
        with TlsRelay(
            context, self.front.tls_port, outward=True, source=source, host=self.front.host
        ) as relay:
            target = f"127.0.0.1:{relay.port}"
            caller = self.exchange.caller(scenario, load=SHORT, extra="-t t1", target=target)
            self.exchange.finish(caller)
        return caller

    def place(self, carrier_sid: str) -> str:
        """Call out by a carrier."""
        verbs = [{"verb": "pause", "length": 1}, {"verb": "hangup"}]
        body = {"from": FORWARDED, "to": CALLED, "verbs": verbs, "carrier_sid": carrier_sid}
        return str(self.exchange.api("POST", "/v1/calls", body)["call_sid"])


@pytest.fixture(scope="module")
def fronted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronted]:
    directory = tmp_path_factory.mktemp("fronted")
    authority = Authority(directory / "ca")
    front = Front(directory / "front", tls=tls_files(directory / "tls", authority), nodes_by_address=True)
    environment = {
        "TRUNKLINE_TRUSTED_SOURCES": "127.0.0.1/32",
        "TRUNKLINE_SIP_MIN_SE": "2",
        "TRUNKLINE_SIP_FRONTS": f"{front.host}/32",
        "TRUNKLINE_SIP_OUTBOUND_PROXY": f"sip:{front.address};transport=tcp",
    }
    with front, Exchange(directory, environment) as exchange:
        front.start([f"sip:127.0.0.1:{exchange.server.sip_port};transport=tcp"])
        yield Fronted(exchange, front, authority)


def tls_files(folder: Path, authority: Authority) -> Path:
    """Make the folder of certificates that the shipped configuration names."""
    folder.mkdir()
    issued = authority.issue("front.example.org", addresses=["127.0.0.5"])
    for name, file in (
        ("front.crt", issued.certificate),
        ("front.key", issued.key),
        ("ca.crt", authority.file),
    ):
        (folder / name).write_bytes(file.read_bytes())
    return folder


def test_a_call_of_carriers_over_tcp(fronted: Fronted) -> None:
    """Ten calls from one carrier to another, each on one connection; the server ends them."""
    exchange = fronted.exchange
    caller_port, callee_port = free_port(), free_port()
    exchange.server.add_carrier("tcp-callers", f"tcp:{CALLERS}:{caller_port}", inbound=True)
    exchange.server.add_carrier("tcp-callees", f"tcp:{CALLEES}:{callee_port}", outbound=True)
    exchange.bind({"target": "forward", "forward_to": f"sip:callee@{CALLEES}:{callee_port}"})
    load = Load(10, 20)
    callee = exchange.callee("uas.xml", load, port=callee_port, extra=f"-t t1 -i {CALLEES}")
    caller = exchange.caller(
        "uac_hung_up_on.xml",
        load=load,
        port=caller_port,
        extra=f"-t t1 -i {CALLERS}",
        target=fronted.front.address,
    )
    assert wait_until(lambda: exchange.calls(status="in-progress")[1] == load.calls, PATIENCE_S)
    for call in exchange.calls(status="in-progress")[0]:
        exchange.api("DELETE", f"/v1/Accounts/{call['account_sid']}/Calls/{call['call_sid']}")
    exchange.finish(caller, callee)
    exchange.assert_clean()


def test_a_carrier_is_known_by_its_certificate(fronted: Fronted) -> None:
    """
    From an address that is nobody's: a caller whose certificate the front has verified is the carrier of that
    name. Without one, and with one of another name, it is a stranger; so is one that adds a name to its own.
    """
    exchange = fronted.exchange
    carrier_sid = exchange.server.add_carrier(
        "by-certificate", "tls:192.0.2.77:5061", inbound=True, certificate_name="PBX.example.org"
    )
    callee_port = free_port()
    exchange.server.add_carrier("udp-callees", f"udp:{CALLEES}:{callee_port}", outbound=True)
    exchange.bind({"target": "forward", "forward_to": f"sip:callee@{CALLEES}:{callee_port}"})
    other = fronted.authority.issue("other", hosts=["other.example.org"])
    sly = fronted.authority.issue("x;name=pbx.example.org", file="sly")
    for number, proof in enumerate((None, other, sly)):
        refused = fronted.call_by_tls(f"127.0.0.{51 + number}", "uac_refused.xml", proof)
        assert refused.wait(1).log == ("refused 403",)
    callee = exchange.callee(port=callee_port, extra=f"-i {CALLEES}")
    fronted.call_by_tls("127.0.0.50", "uac.xml", fronted.authority.issue("pbx", hosts=["pbx.example.org"]))
    exchange.finish(callee)
    [call], _ = exchange.calls(per_page=1)
    assert call["carrier_sid"] == carrier_sid
    exchange.assert_clean()


def test_a_session_is_refreshed_over_tls(fronted: Fronted) -> None:
    """
    The caller's Contact, in its INVITE and in its answers, leads nowhere: both re-INVITEs of the server reach
    it on the connection that it opened.
    """
    exchange = fronted.exchange
    exchange.server.add_carrier(
        "refreshed", "tls:192.0.2.78:5061", inbound=True, certificate_name="timer.example.org"
    )
    callee_port = free_port()
    exchange.server.add_carrier("refreshed-callees", f"udp:{CALLEES}:{callee_port}", outbound=True)
    exchange.bind({"target": "forward", "forward_to": f"sip:callee@{CALLEES}:{callee_port}"})
    callee = exchange.callee(port=callee_port, extra=f"-i {CALLEES}")
    proof = fronted.authority.issue("timer", hosts=["timer.example.org"])
    fronted.call_by_tls("127.0.0.49", "timer_uac_unreachable.xml", proof)
    exchange.finish(callee)
    exchange.assert_clean()


def test_a_carrier_is_called_over_tls(fronted: Fronted) -> None:
    """The front calls a carrier over TLS; one whose certificate is of another authority is not called."""
    exchange = fronted.exchange
    stranger = Authority(exchange.directory / "other-ca", "Other CA")
    for authority, outcome in ((fronted.authority, "completed"), (stranger, "no-answer")):
        theirs = authority.issue("trunk", addresses=["127.0.0.1"])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(theirs.certificate, theirs.key)
        inner_port = free_port()
        callee = exchange.callee("uas_tls_fronted.xml", port=inner_port, extra="-t t1")
        with TlsRelay(context, inner_port, outward=False) as relay:
            carrier_sid = exchange.server.add_carrier("tls", f"tls:127.0.0.1:{relay.port}", outbound=True)
            call = exchange.wait_for_status(fronted.place(carrier_sid), "completed", "no-answer", "failed")
            assert call["status"] == outcome, fronted.front.log()
            if outcome == "completed":
                exchange.finish(callee)
                assert set(relay.versions) == {"TLSv1.3"}
            else:
                assert relay.connections == 0
        callee.kill()
