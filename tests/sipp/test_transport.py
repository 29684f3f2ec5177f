"""Calls over TCP, TLS and IPv6, large requests, and what streams do to messages, against the process."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sipp.exchange import FORWARDED, UNKNOWN, Exchange
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load
from tests.support.tls_relay import TlsRelay

CALLED = "+919812345678"
LARGE = {f"X-Padding-{number}": "0123456789" * 25 for number in range(6)}
PATIENCE_S = 40.0


class Transports(Exchange):
    """An exchange whose server also speaks TLS and IPv6, with a trunk for each way of being called."""

    authority: Authority
    tcp_port = tls_port = large_port = ipv6_port = ipv6_caller_port = 0
    carriers: dict[str, str]
    ipv6_target = ""

    def add_trunks(self) -> None:
        self.carriers = {}
        for name in ("tcp", "tls", "large", "ipv6"):
            port = free_port()
            setattr(self, f"{name}_port", port)
            gateway = {
                "large": f"udp:127.0.0.1:{port}",
                "ipv6": f"udp:[::1]:{port}",
            }.get(name, f"{name}:127.0.0.1:{port}")
            self.carriers[name] = self.server.add_carrier(f"on-{name}", gateway, outbound=True)
        self.ipv6_caller_port = free_port()
        self.server.add_carrier("by-ipv6", f"udp:[::1]:{self.ipv6_caller_port}", inbound=True)

    def place(self, carrier: str, **more: Any) -> str:
        """Call out by one of the trunks."""
        verbs = [{"verb": "pause", "length": 1}, {"verb": "hangup"}]
        body = {"from": FORWARDED, "to": CALLED, "verbs": verbs, "carrier_sid": self.carriers[carrier]}
        return str(self.api("POST", "/v1/calls", body | more)["call_sid"])

    def expect_completed(self, call_sid: str) -> None:
        call = self.wait_for_status(call_sid, "completed", "failed", "no-answer", "busy")
        assert (call["status"], call["hangup_cause"]) == ("completed", "NORMAL_CLEARING"), self.server.log()


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Transports]:
    directory = tmp_path_factory.mktemp("transports")
    authority = Authority(directory / "ca")
    ours = authority.issue("server", addresses=["127.0.0.1", "::1"])
    udp_port = free_port()
    environment = {
        "TRUNKLINE_SIP_TLS_CA": str(authority.file),
        "TRUNKLINE_SIP_TLS_CLIENTS": "optional",
        "TRUNKLINE_SIP_KEEPALIVE_S": "1",
    }
    running = Transports(directory, environment, tls=(ours.certificate, ours.key))
    running.server.also_listen(f"udp:[::1]:{udp_port}", f"tcp:[::1]:{udp_port}")
    running.ipv6_target, running.authority = f"[::1]:{udp_port}", authority
    with running:
        running.add_trunks()
        yield running


def client_context(exchange: Transports) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(exchange.authority.file))


@pytest.fixture
def called(clean: Transports) -> Transports:
    return clean


# TCP.


def test_a_trunk_on_tcp(called: Transports) -> None:
    callee = called.callee("uas_tcp.xml", port=called.tcp_port, extra="-t t1")
    call_sid = called.place("tcp")
    called.expect_completed(call_sid)
    called.finish(callee)


def test_a_caller_on_tcp_and_a_trunk_on_tcp(called: Transports) -> None:
    """Ten calls share one connection on either side."""
    called.bind({"target": "forward", "forward_to": f"sip:callee@127.0.0.1:{called.tcp_port}"})
    load = Load(10, 20)
    callee = called.callee("uas_tcp.xml", load, port=called.tcp_port, extra="-t t1")
    caller = called.caller("uac.xml", load=Load(10, 20, 300), extra="-t t1")
    called.finish(caller, callee)
    called.bind(called.to_callee())


def test_a_trunk_on_tcp_that_is_not_there(called: Transports) -> None:
    call = called.wait_for_status(called.place("tcp"), "failed")
    assert call["sip_status"] in (None, 503)


# TLS.


def test_a_caller_on_tls(called: Transports) -> None:
    tls_port = called.server.tls_port
    assert tls_port is not None
    callee = called.callee()
    with TlsRelay(client_context(called), tls_port, outward=True) as relay:
        target = f"127.0.0.1:{relay.port}"
        caller = called.caller("uac_tls.xml", load=Load(pause_ms=300), extra="-t t1", target=target)
        called.finish(caller, callee)
        assert relay.versions == ["TLSv1.3"]


def test_a_call_to_a_sips_uri(called: Transports) -> None:
    tls_port = called.server.tls_port
    assert tls_port is not None
    context = client_context(called)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    callee = called.callee()
    with TlsRelay(context, tls_port, outward=True) as relay:
        target = f"127.0.0.1:{relay.port}"
        caller = called.caller("uac_sips.xml", load=Load(pause_ms=300), extra="-t t1", target=target)
        called.finish(caller, callee)
        assert relay.versions == ["TLSv1.2"]


def test_a_trunk_is_known_by_its_certificate(called: Transports) -> None:
    """From an address that is nobody's: without the certificate it is a stranger."""
    tls_port = called.server.tls_port
    assert tls_port is not None
    called.server.add_carrier(
        "by-certificate", "tls:192.0.2.77:5061", inbound=True, certificate_name="PBX.example.org"
    )
    context = client_context(called)
    with TlsRelay(context, tls_port, outward=True, source="127.0.0.5") as relay:
        target = f"127.0.0.1:{relay.port}"
        refused = called.caller("uac_refused.xml", extra="-t t1", target=target)
        called.finish(refused)
        assert refused.wait(1).log == ("refused 403",)
    proof = called.authority.issue("pbx", hosts=["pbx.example.org"])
    context.load_cert_chain(proof.certificate, proof.key)
    callee = called.callee()
    with TlsRelay(context, tls_port, outward=True, source="127.0.0.5") as relay:
        target = f"127.0.0.1:{relay.port}"
        caller = called.caller("uac_tls.xml", load=Load(pause_ms=300), extra="-t t1", target=target)
        called.finish(caller, callee)


def test_a_sips_request_in_the_clear(called: Transports) -> None:
    called.finish(called.caller("uac_sips_refused.xml"))


def test_a_trunk_on_tls(called: Transports) -> None:
    theirs = called.authority.issue("trunk", addresses=["127.0.0.1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(theirs.certificate, theirs.key)
    inner_port = free_port()
    callee = called.callee("uas_tls.xml", Load(2), port=inner_port, extra="-t t1")
    with TlsRelay(context, inner_port, outward=False, port=called.tls_port) as relay:
        called.expect_completed(called.place("tls"))
        called.expect_completed(called.place("tls"))
        called.finish(callee)
        assert relay.connections == 1, "the second call takes the same connection"


def test_a_trunk_on_tls_with_the_certificate_of_another(called: Transports) -> None:
    theirs = called.authority.issue("other", hosts=["other.example.net"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(theirs.certificate, theirs.key)
    inner_port = free_port()
    callee = called.callee("uas_tls.xml", port=inner_port, extra="-t t1")
    with TlsRelay(context, inner_port, outward=False, port=called.tls_port):
        call = called.wait_for_status(called.place("tls"), "failed")
    assert call["sip_status"] in (None, 503)
    assert callee.stop().successful == 0
    assert "its certificate is for other.example.net, not for 127.0.0.1" in called.server.log()


# Large requests.


def test_a_large_invite_comes_in(called: Transports) -> None:
    for extra in ("-t u1", "-t t1"):
        callee = called.callee()
        called.finish(called.caller("uac_large.xml", load=Load(pause_ms=200), extra=extra), callee)


def test_a_large_invite_goes_out_by_tcp(called: Transports) -> None:
    callee = called.callee("uas_large.xml", port=called.large_port, extra="-t t1")
    called.expect_completed(called.place("large", headers=LARGE))
    called.finish(callee)


def test_a_large_invite_goes_out_as_a_datagram_where_nobody_takes_connections(called: Transports) -> None:
    """To an address of its own: that TCP was to be had at the other one is remembered, or not."""
    port = free_port()
    called.carriers["datagrams"] = called.server.add_carrier(
        "datagrams", f"udp:127.0.0.1:{port}", outbound=True
    )
    callee = called.callee("uas_large_udp.xml", port=port)
    called.expect_completed(called.place("datagrams", headers=LARGE))
    called.finish(callee)


# IPv6.


def test_a_caller_by_ipv6(called: Transports) -> None:
    callee = called.callee()
    caller = called.caller(
        "uac_ipv6.xml",
        load=Load(pause_ms=200),
        port=called.ipv6_caller_port,
        extra="-i ::1",
        target=called.ipv6_target,
    )
    called.finish(caller, callee)


def test_a_trunk_by_ipv6(called: Transports) -> None:
    callee = called.callee("uas_ipv6.xml", port=called.ipv6_port, extra="-i ::1")
    called.expect_completed(called.place("ipv6"))
    called.finish(callee)


# Streams, by hand.


def options(number: int, **changes: str) -> bytes:
    """An OPTIONS request; fields by name, an empty one is left out."""
    fields = {
        "Via": f"SIP/2.0/TCP 127.0.0.1:9;branch=z9hG4bK{time.monotonic_ns()}-{number};rport",
        "From": "<sip:raw@127.0.0.1>;tag=raw",
        "To": "<sip:ua@127.0.0.1>",
        "Call-ID": f"raw-{number}",
        "CSeq": f"{number} OPTIONS",
        "Max-Forwards": "70",
        "Content-Length": "0",
    }
    fields |= {name.replace("_", "-"): value for name, value in changes.items()}
    lines = [f"{name}: {value}\r\n" for name, value in fields.items() if value]
    return ("OPTIONS sip:127.0.0.1 SIP/2.0\r\n" + "".join(lines) + "\r\n").encode()


@contextlib.contextmanager
def connection(exchange: Transports) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", exchange.server.sip_port), PATIENCE_S) as sock:
        yield sock


def read_until(sock: socket.socket, text: bytes, times: int = 1) -> bytes:
    got = b""
    while got.count(text) < times:
        data = sock.recv(65536)
        assert data, f"closed after {got!r}"
        got += data
    return got


def test_messages_split_and_together(called: Transports) -> None:
    with connection(called) as sock:
        for byte in options(1):
            sock.sendall(bytes([byte]))
        read_until(sock, b"CSeq: 1 OPTIONS")
        sock.sendall(b"".join(options(number) for number in range(2, 12)))
        got = read_until(sock, b"SIP/2.0 200", 10)
        assert [got.index(f"CSeq: {number} OPTIONS".encode()) for number in range(2, 12)] == sorted(
            got.index(f"CSeq: {number} OPTIONS".encode()) for number in range(2, 12)
        )


def test_a_ping_is_answered(called: Transports) -> None:
    with connection(called) as sock:
        sock.sendall(b"\r\n\r\n")
        assert sock.recv(100) == b"\r\n"
        sock.sendall(b"\r\n\r\n" + options(1))
        assert read_until(sock, b"SIP/2.0 200").startswith(b"\r\n")


@pytest.mark.parametrize(
    ("length", "status"), [("", b"400"), ("0\r\nl: 1", b"400"), ("x", b"400"), ("9999999", b"513")]
)
def test_a_message_without_a_certain_end(called: Transports, length: str, status: bytes) -> None:
    with connection(called) as sock:
        sock.sendall(options(1, Content_Length=length))
        assert read_until(sock, b"\r\n\r\n").startswith(b"SIP/2.0 " + status)
        assert sock.recv(100) == b"", "and the connection is closed"
    with connection(called) as sock:
        sock.sendall(options(2))
        read_until(sock, b"SIP/2.0 200")


def test_a_connection_of_ours_is_kept_alive_while_a_call_is_up(called: Transports) -> None:
    """A trunk that answers pings, and a call over its connection that is longer than the interval."""
    with socket.create_server(("127.0.0.1", called.tcp_port)) as listener:
        listener.settimeout(PATIENCE_S)
        call_sid = called.place("tcp", verbs=[{"verb": "pause", "length": 60}])
        sock, _ = listener.accept()
        with sock:
            sock.settimeout(PATIENCE_S)
            invite = read_until(sock, b"\r\n\r\nv=0").decode()
            sock.sendall(_answer(invite, called.tcp_port))
            read_until(sock, b"ACK sip:")
            for _ in range(2):
                assert read_until(sock, b"\r\n\r\n").endswith(b"\r\n\r\n")
                sock.sendall(b"\r\n")
            assert called.server.metric("trunkline_sip_connections") >= 1
        # The trunk hangs up without a word: the BYE finds no way, and the call ends all the same.
    called.api("DELETE", f"/v1/Accounts/{called.account.account_sid}/Calls/{call_sid}")
    called.wait_for_status(call_sid, "completed", "failed")
    assert wait_until(lambda: called.server.metric("trunkline_sip_sessions") == 0, 40)


def _answer(invite: str, port: int) -> bytes:
    """The 200 to an INVITE, with audio that goes nowhere."""
    copied = [
        line for line in invite.split("\r\n") if line.split(":")[0] in ("Via", "From", "Call-ID", "CSeq")
    ]
    [to] = [line for line in invite.split("\r\n") if line.startswith("To:")]
    body = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n"
    lines = [
        "SIP/2.0 200 OK",
        *copied,
        f"{to};tag=raw",
        f"Contact: <sip:raw@127.0.0.1:{port};transport=tcp>",
        "Content-Type: application/sdp",
        f"Content-Length: {len(body)}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def test_unknown_numbers_are_not_found_over_tls_either(called: Transports) -> None:
    tls_port = called.server.tls_port
    assert tls_port is not None
    with TlsRelay(client_context(called), tls_port, outward=True) as relay:
        target = f"127.0.0.1:{relay.port}"
        caller = called.caller("uac_refused.xml", UNKNOWN, extra="-t t1", target=target)
        called.finish(caller)
    assert caller.wait(1).log == ("refused 404",)
