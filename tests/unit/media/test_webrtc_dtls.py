"""DTLS of a browser's leg, against OpenSSL as the browser."""

from __future__ import annotations

from OpenSSL import SSL

from media.webrtc.aio import make_identity
from media.webrtc.dtls import DtlsIdentity, DtlsServer

PROFILE = b"SRTP_AES128_CM_SHA1_80"


class Browser:
    """The client's side, by method calls."""

    def __init__(self, identity: DtlsIdentity, profile: bytes = PROFILE) -> None:
        context = SSL.Context(SSL.DTLS_CLIENT_METHOD)
        context.set_options(SSL.OP_NO_QUERY_MTU)
        context.use_certificate(identity.certificate)
        context.use_privatekey(identity.key)
        context.set_tlsext_use_srtp(profile)
        self.connection = SSL.Connection(context)
        self.connection.set_connect_state()
        self.connection.set_ciphertext_mtu(1200)
        self.sent: list[int] = []

    def step(self, datagrams: list[bytes]) -> bytes:
        """Handle datagrams, and return what is written then."""
        for datagram in datagrams:
            self.connection.bio_write(datagram)
        try:
            self.connection.do_handshake()
        except SSL.WantReadError:
            pass
        try:
            return self.connection.bio_read(65536)
        except SSL.WantReadError:
            return b""


def handshake(browser: Browser, server: DtlsServer) -> None:
    written = browser.step([])
    for _ in range(6):
        written = browser.step(server.receive(written) if written else [])


def test_both_sides_have_the_same_keys() -> None:
    mine = make_identity()
    browser, server = Browser(mine), DtlsServer(make_identity().context(), mine.fingerprint)
    handshake(browser, server)
    assert server.keys is not None and server.problem is None
    material = browser.connection.export_keying_material(b"EXTRACTOR-dtls_srtp", 60)
    assert server.keys.theirs.key == material[:16] + material[32:46]
    assert server.keys.ours.key == material[16:32] + material[46:]
    assert "bytes" not in repr(server.keys) and material[:4].hex() not in repr(server.keys)


def test_datagrams_fit_any_path_and_hold_whole_records() -> None:
    mine = make_identity()
    browser, server = Browser(mine), DtlsServer(make_identity().context(), mine.fingerprint)
    flight = server.receive(browser.step([]))
    assert flight and all(len(datagram) <= 1200 for datagram in flight)
    for datagram in flight:
        place = 0
        while place < len(datagram):
            place += 13 + int.from_bytes(datagram[place + 11 : place + 13])
        assert place == len(datagram)


def test_another_certificate_gives_no_keys() -> None:
    browser, server = Browser(make_identity()), DtlsServer(make_identity().context(), bytes(32))
    handshake(browser, server)
    assert server.keys is None and server.problem == "the certificate is not the one of the offer"
    assert server.receive(b"\x16more") == []


def test_a_browser_without_the_profile_gets_no_keys() -> None:
    mine = make_identity()
    browser = Browser(mine, b"SRTP_AES128_CM_SHA1_32")
    server = DtlsServer(make_identity().context(), mine.fingerprint)
    handshake(browser, server)
    assert server.keys is None and server.problem is not None


def test_nonsense_within_a_connection_is_ignored_and_its_end_is_seen() -> None:
    mine = make_identity()
    browser, server = Browser(mine), DtlsServer(make_identity().context(), mine.fingerprint)
    handshake(browser, server)
    for nonsense in (b"", b"\x16", b"\x17" * 60, bytes(range(20, 60))):
        server.receive(nonsense)
    assert server.keys is not None and not server.closed and server.problem is None
    browser.connection.shutdown()
    server.receive(browser.connection.bio_read(65536))
    assert server.closed and server.close() == []


def test_the_browser_is_told_of_the_end() -> None:
    mine = make_identity()
    browser, server = Browser(mine), DtlsServer(make_identity().context(), mine.fingerprint)
    assert server.close() == []
    handshake(browser, server)
    (datagram,) = server.close()
    browser.connection.bio_write(datagram)
    try:
        browser.connection.recv(100)
    except SSL.ZeroReturnError:
        return
    raise AssertionError("the browser does not see the end")
