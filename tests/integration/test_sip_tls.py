"""User agents over TLS on real loopback sockets: certificates, names, and who is refused."""

import asyncio
import contextlib
import datetime
import logging
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sip import Answered, Destination, Ended, Failed, NameAddr, OutboundInvite, SessionEvent, SipUri, Timers
from sip.aio import (
    ClientCertificates,
    InboundSession,
    Listen,
    OutboundSession,
    TlsSettings,
    UserAgent,
    UserAgentSettings,
)
from tests.support.certificates import Authority, Issued
from tests.support.waiting import time_passes, until

SDP = b"v=0\r\n"
FAST = Timers(t1_s=0.05, t2_s=0.2, t4_s=0.05, trying_s=0.02, completed_invite_s=0.2)
# A first handshake may take seconds on a busy machine: a request is not given up before the test is.
PATIENT = Timers(t1_s=0.5, t2_s=0.2, t4_s=0.05, trying_s=0.02, completed_invite_s=0.2)
DEADLINE_S = 40.0


class Party:
    """A user agent with a TLS listener that answers every call."""

    def __init__(self, tls: TlsSettings, host: str = "127.0.0.1", timers: Timers = PATIENT) -> None:
        self.host = host
        self.inbound: list[InboundSession] = []
        self.events: list[SessionEvent] = []
        self.ua = UserAgent(
            [Listen("tls", host, 0), Listen("udp", host, 0)],
            UserAgentSettings(timers=timers, tls=tls),
            on_invite=self.take,
        )

    def take(self, session: InboundSession) -> None:
        self.inbound.append(session)
        session.on_event = self.events.append
        session.answer(SDP)

    @property
    def port(self) -> int:
        return self.ua.addresses[0].port

    def call(
        self, peer: "Party", *, verify: str | None = None, scheme: str = "sip", host: str = ""
    ) -> tuple[OutboundSession, list[SessionEvent]]:
        events: list[SessionEvent] = []
        invite = OutboundInvite(
            uri=SipUri(scheme, "bob", host=peer.host, port=peer.port),
            from_=NameAddr.parse("<sip:alice@example.net>"),
            to=NameAddr.parse("<sip:bob@example.net>"),
            destination=Destination("tls", host or peer.host, peer.port, verify),
            body=SDP,
        )
        return self.ua.invite(invite, events.append), events

    async def answered_by(self, peer: "Party", **options: str) -> OutboundSession:
        session, events = self.call(peer, **options)
        await until(lambda: events)
        assert isinstance(events[-1], Answered), events
        return session

    async def refused_by(self, peer: "Party", **options: str) -> Failed:
        _, events = self.call(peer, **options)
        await until(lambda: events)
        [failed] = events
        assert isinstance(failed, Failed)
        assert (failed.status, failed.cause) == (503, "transport")
        return failed


@contextlib.asynccontextmanager
async def running(*all_parties: Party) -> AsyncIterator[None]:
    for party in all_parties:
        await party.ua.start()
    try:
        yield
    finally:
        for party in all_parties:
            await party.ua.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def local(authority: Authority) -> Issued:
    return authority.issue("loopback", addresses=["127.0.0.1", "::1"], hosts=["sbc.example.net"])


def settings(issued: Issued, authority: Authority, **options: object) -> TlsSettings:
    return TlsSettings(issued.certificate, issued.key, authority.file, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("scheme", ["sip", "sips"])
async def test_a_call_in_both_directions(authority: Authority, local: Issued, host: str, scheme: str) -> None:
    alice, bob = (Party(settings(local, authority), host) for _ in range(2))
    async with running(alice, bob):
        session = await alice.answered_by(bob, scheme=scheme)
        [inbound] = bob.inbound
        contact = inbound.request.contact
        assert contact is not None and contact.uri.scheme == scheme
        assert inbound.request.via.transport == "TLS"
        assert alice.ua.connections == bob.ua.connections == {"tls": 1}
        inbound.hangup()  # Over the connection the call came by, whatever port the Contact names.
        await until(lambda: session.state.name == "ENDED")
        assert alice.ua.connections == bob.ua.connections == {"tls": 1}
        back = await bob.answered_by(alice, scheme=scheme)
        back.hangup()
        await until(lambda: alice.events and isinstance(alice.events[-1], Ended))


async def test_a_refused_connection_fails_at_once(authority: Authority, local: Issued) -> None:
    alice, bob = (Party(settings(local, authority)) for _ in range(2))
    async with running(alice):
        async with running(bob):
            pass  # Its port is free again.
        clock = asyncio.get_running_loop().time
        began_s = clock()
        failed = await alice.refused_by(bob)
        assert "refused" in failed.reason
        assert clock() - began_s < 1.0  # By the virtual clock.


@pytest.mark.parametrize(
    ("hosts", "verify", "complaint"),
    [
        (["sbc.example.net"], "sbc.example.net", None),
        (["SBC.example.net"], "sbc.EXAMPLE.net", None),
        (["other.example.net"], "sbc.example.net", "for other.example.net, not for sbc.example.net"),
        (["*.example.net"], "sbc.example.net", "wildcards are not accepted"),
    ],
)
async def test_the_certificate_must_be_for_the_name_that_was_wanted(
    authority: Authority, local: Issued, hosts: list[str], verify: str, complaint: str | None
) -> None:
    theirs = authority.issue("someone", hosts=hosts)
    alice, bob = Party(settings(local, authority)), Party(settings(theirs, authority))
    async with running(alice, bob):
        if complaint is None:
            session = await alice.answered_by(bob, verify=verify)
            assert session.flow is not None
            assert session.flow.peer_names == {verify.lower()}
        else:
            failed = await alice.refused_by(bob, verify=verify)
            assert complaint in failed.reason
            assert not bob.inbound


async def test_a_gateway_named_by_host_must_prove_that_name(authority: Authority, local: Issued) -> None:
    """Also for requests within the call, whose target is an address."""
    named = authority.issue("named", hosts=["localhost"])
    alice, bob = Party(settings(local, authority)), Party(settings(named, authority), timers=FAST)
    async with running(alice, bob):
        session = await alice.answered_by(bob, host="localhost")
        flow = session.flow
        assert flow is not None
        assert (flow.name, flow.remote[0]) == ("localhost", "127.0.0.1")
        await until(lambda: not bob.ua.transactions)
        flow.abort()
        session.hangup()  # Its connection is gone, and the Contact is an address no certificate is for.
        await until(lambda: bob.events and isinstance(bob.events[-1], Ended))
        failed = await alice.refused_by(bob)
        assert "not for 127.0.0.1" in failed.reason


async def test_a_hundred_calls_share_a_connection(authority: Authority, local: Issued) -> None:
    alice, bob = (Party(settings(local, authority), timers=FAST) for _ in range(2))
    async with running(alice, bob):
        calls = [alice.call(bob) for _ in range(100)]
        await until(lambda: all(events and isinstance(events[-1], Answered) for _, events in calls))
        assert alice.ua.connections == bob.ua.connections == {"tls": 1}
        for session, _ in calls:
            session.hangup()
        await until(lambda: sum(isinstance(event, Ended) for event in bob.events) == 100)
        uas = (alice.ua, bob.ua)
        await until(lambda: not any(ua.transactions or ua.timers or ua.sessions for ua in uas))


async def test_wildcards_where_they_are_allowed(authority: Authority, local: Issued) -> None:
    theirs = authority.issue("*.example.net")
    alice = Party(settings(local, authority, wildcards=True))
    bob = Party(settings(theirs, authority))
    async with running(alice, bob):
        await alice.answered_by(bob, verify="sbc.example.net")
        await alice.refused_by(bob, verify="a.b.example.net")


async def test_one_address_under_two_names_takes_two_connections(authority: Authority, local: Issued) -> None:
    theirs = authority.issue("both", hosts=["one.example.net", "two.example.net"])
    alice, bob = Party(settings(local, authority)), Party(settings(theirs, authority))
    async with running(alice, bob):
        await alice.answered_by(bob, verify="one.example.net")
        await alice.answered_by(bob, verify="one.example.net")
        assert alice.ua.connections == {"tls": 1}
        await alice.answered_by(bob, verify="two.example.net")
        assert alice.ua.connections == {"tls": 2}
        await alice.refused_by(bob, verify="three.example.net")


async def test_an_authority_that_is_not_ours(
    authority: Authority, local: Issued, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = Authority(tmp_path, "Strange CA")
    theirs = stranger.issue("loopback", addresses=["127.0.0.1"])
    alice, bob = Party(settings(local, authority)), Party(settings(theirs, authority))
    with caplog.at_level(logging.INFO, "sip"):
        async with running(alice, bob):
            failed = await alice.refused_by(bob)
            assert "its certificate is not accepted" in failed.reason
            await until(lambda: "unknown ca" in caplog.text)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert f"127.0.0.1:{bob.port}" in warnings[0]


async def test_a_certificate_that_ran_out(authority: Authority, local: Issued) -> None:
    theirs = authority.issue("old", addresses=["127.0.0.1"], until=datetime.datetime(2021, 1, 1), file="old")
    alice, bob = Party(settings(local, authority)), Party(settings(theirs, authority))
    async with running(alice, bob):
        failed = await alice.refused_by(bob)
        assert "expired" in failed.reason


async def test_servers_are_not_verified_when_told_so(
    authority: Authority, local: Issued, tmp_path: Path
) -> None:
    theirs = Authority(tmp_path, "Strange CA").issue("whoever")
    alice = Party(settings(local, authority, verify_servers=False))
    bob = Party(settings(theirs, authority))
    async with running(alice, bob):
        session = await alice.answered_by(bob)
        assert session.flow is not None
        assert session.flow.peer_names == frozenset(), "nothing was proved"


@pytest.mark.parametrize("clients", [ClientCertificates.OPTIONAL, ClientCertificates.REQUIRED])
async def test_client_certificates_tell_who_calls(
    authority: Authority, local: Issued, clients: ClientCertificates
) -> None:
    ours = authority.issue("pbx", hosts=["pbx.example.org"], uris=["sip:example.org", "sip:someone@x.org"])
    alice = Party(settings(ours, authority))
    bob = Party(settings(local, authority, clients=clients))
    async with running(alice, bob):
        await alice.answered_by(bob)
        assert bob.inbound[0].peer_names == {"pbx.example.org", "example.org"}


async def test_without_asking_nobody_is_proved(authority: Authority, local: Issued) -> None:
    alice, bob = Party(settings(local, authority)), Party(settings(local, authority))
    async with running(alice, bob):
        await alice.answered_by(bob)
        assert bob.inbound[0].peer_names == frozenset()


async def raw_connection(
    bob: Party, authority: Authority, **options: object
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context(cafile=str(authority.file))
    context.check_hostname = False
    for name, value in options.items():
        setattr(context, name, value)
    return await asyncio.open_connection("127.0.0.1", bob.port, ssl=context)


async def test_a_client_without_a_certificate_where_one_is_required(
    authority: Authority, local: Issued
) -> None:
    bob = Party(settings(local, authority, clients=ClientCertificates.REQUIRED))
    async with running(bob):
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            reader, writer = await raw_connection(bob, authority)
            writer.write(OPTIONS)
            assert await asyncio.wait_for(reader.read(), DEADLINE_S) == b""
        await until(lambda: bob.ua.connections == {"tls": 0})


OPTIONS = (
    b"OPTIONS sips:127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TLS 127.0.0.1:1;branch=z9hG4bKx;rport\r\n"
    b"From: <sips:a@b>;tag=1\r\nTo: <sips:c@d>\r\nCall-ID: x\r\nCSeq: 1 OPTIONS\r\n"
    b"Max-Forwards: 70\r\nContent-Length: 0\r\n\r\n"
)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_versions_pieces_and_pipelines(
    authority: Authority, local: Issued, version: ssl.TLSVersion
) -> None:
    bob = Party(settings(local, authority))
    async with running(bob):
        reader, writer = await raw_connection(
            bob, authority, minimum_version=version, maximum_version=version
        )
        writer.write(b"\r\n\r\n")
        assert await asyncio.wait_for(reader.readexactly(2), DEADLINE_S) == b"\r\n"
        for at in range(0, len(OPTIONS), 50):
            writer.write(OPTIONS[at : at + 50])
            await writer.drain()
            await time_passes(0.002)
        writer.write(OPTIONS.replace(b"bKx", b"bKy") + OPTIONS.replace(b"bKx", b"bKz"))
        got = b""
        while got.count(b"SIP/2.0 200 OK") < 3:
            got += await asyncio.wait_for(reader.read(65536), DEADLINE_S)
        writer.close()
        await writer.wait_closed()
        await until(lambda: bob.ua.connections == {"tls": 0})


async def test_older_versions_are_refused(authority: Authority, local: Issued) -> None:
    bob = Party(settings(local, authority))
    async with running(bob):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning):
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", bob.port, ssl=context)


async def test_plain_text_to_a_tls_port_is_closed(authority: Authority, local: Issued) -> None:
    bob = Party(settings(local, authority))
    async with running(bob):
        reader, writer = await asyncio.open_connection("127.0.0.1", bob.port)
        writer.write(OPTIONS)
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), DEADLINE_S)
        await until(lambda: bob.ua.connections == {"tls": 0})
        writer.close()


async def test_a_certificate_that_was_replaced_is_read_again(
    authority: Authority, local: Issued, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = authority.issue("renewed", hosts=["old.example.net"], file="renewed")
    alice, bob = Party(settings(local, authority)), Party(settings(theirs, authority))
    with caplog.at_level(logging.INFO, "sip"):
        async with running(alice, bob):
            await alice.answered_by(bob, verify="old.example.net")
            authority.issue("renewed", hosts=["new.example.net"], file="renewed")
            await alice.answered_by(bob, verify="new.example.net")
            assert "was reloaded" in caplog.text
            theirs.certificate.write_text("no certificate")
            os.utime(theirs.certificate, (1, 1))
            again = Party(settings(local, authority))
            async with running(again):
                await again.answered_by(bob, verify="new.example.net")
            assert "the old one stays in use" in caplog.text


async def test_a_certificate_that_cannot_be_used_is_an_error_at_the_start(
    authority: Authority, local: Issued, tmp_path: Path
) -> None:
    broken = Party(TlsSettings(tmp_path / "none.pem", local.key))
    with pytest.raises(ValueError, match="none.pem: No such file"):
        await broken.ua.start()
    swapped = Party(TlsSettings(local.key, local.certificate))
    with pytest.raises(ValueError, match="not a certificate with its key"):
        await swapped.ua.start()
    bad_authority = Party(TlsSettings(local.certificate, local.key, local.key))
    with pytest.raises(ValueError, match="has no certificates"):
        await bad_authority.ua.start()


async def test_a_tls_address_without_a_certificate() -> None:
    ua = UserAgent([Listen("tls", "127.0.0.1", 0)], on_invite=lambda session: None)
    with pytest.raises(ValueError, match="certificate"):
        await ua.start()
