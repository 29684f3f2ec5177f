"""
DTLS-SRTP of a browser's leg: the handshake alone, as its server (RFC 5763, RFC 5764).

OpenSSL performs the protocol on datagrams that are handed to it. The keys of both directions come out of the
handshake; SRTP itself is the media engine's.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509 import Certificate
from OpenSSL import SSL

from media.types import SrtpKey
from media.webrtc.descriptions import SRTP_SUITE

_PROFILE: Final = b"SRTP_AES128_CM_SHA1_80"
_KEY_BYTES, _SALT_BYTES = 16, 14
_EXPORTER: Final = b"EXTRACTOR-dtls_srtp"
_MTU_BYTES: Final = 1200
_RECORD_HEADER_BYTES: Final = 13


@dataclass(frozen=True, slots=True)
class SrtpKeys:
    """Keys of both directions: ``theirs`` is what the browser sends with, ``ours`` what it expects."""

    theirs: SrtpKey
    ours: SrtpKey


@dataclass(frozen=True, slots=True)
class DtlsIdentity:
    """Certificate that our side of every handshake shows; descriptions state its ``fingerprint``."""

    certificate: Certificate
    key: EllipticCurvePrivateKey = field(repr=False)

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 of the certificate."""
        return self.certificate.fingerprint(SHA256())

    def context(self) -> SSL.Context:
        """Return the context of handshakes with this certificate."""
        context = SSL.Context(SSL.DTLS_SERVER_METHOD)
        context.set_options(SSL.OP_NO_QUERY_MTU | SSL.OP_NO_TICKET)
        # The fingerprint of the offer decides, not an authority (RFC 5763 5).
        context.set_verify(
            SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, lambda *certificate_and_problem: True
        )
        context.use_certificate(self.certificate)
        context.use_privatekey(self.key)
        context.set_tlsext_use_srtp(_PROFILE)
        return context


class DtlsServer:
    """
    One handshake; datagrams come in by method call, and those to send are returned.

    Attributes:
        keys: Keys of SRTP, once the handshake is complete.
        problem: Reason why there will never be keys; None while there may be.
        closed: True once the browser has closed the connection.
    """

    def __init__(self, context: SSL.Context, fingerprint: bytes) -> None:
        self.keys: SrtpKeys | None = None
        self.problem: str | None = None
        self.closed = False
        self._fingerprint = fingerprint
        self._connection = SSL.Connection(context)
        self._connection.set_accept_state()
        self._connection.set_ciphertext_mtu(_MTU_BYTES)

    def receive(self, datagram: bytes) -> list[bytes]:
        """Process a datagram of the browser, and return those to send."""
        if self.problem is not None or self.closed:
            return []
        try:
            self._connection.bio_write(datagram)
            if self.keys is None:
                self._connection.do_handshake()
                self._complete()
            else:
                self._connection.recv(_MTU_BYTES)
        except SSL.WantReadError:
            pass
        except SSL.ZeroReturnError:
            self.closed = True
        except SSL.Error:
            # A wrong datagram of a connection that is up is ignored, as DTLS demands (RFC 6347 4.1.2.7).
            if self.keys is None:
                self.problem = "the handshake failed"
        return list(self._drain())

    def retransmit(self) -> list[bytes]:
        """Return the datagrams that are due again."""
        if self.keys is not None or self.problem is not None or self._connection.DTLSv1_get_timeout() != 0:
            return []
        try:
            self._connection.DTLSv1_handle_timeout()
        except SSL.Error:
            self.problem = "the handshake was not answered"
        return list(self._drain())

    def close(self) -> list[bytes]:
        """Return the datagrams that tell the browser of the end."""
        if self.keys is None or self.closed:
            return []
        self.closed = True
        try:
            self._connection.shutdown()
        except SSL.Error:
            return []
        return list(self._drain())

    def _complete(self) -> None:
        certificate = self._connection.get_peer_certificate(as_cryptography=True)
        shown = b"" if certificate is None else certificate.fingerprint(SHA256())
        if not hmac.compare_digest(shown, self._fingerprint):
            self.problem = "the certificate is not the one of the offer"
        elif self._connection.get_selected_srtp_profile() != _PROFILE:
            self.problem = "the browser does not support SRTP_AES128_CM_HMAC_SHA1_80"
        else:
            self.keys = _split(
                self._connection.export_keying_material(_EXPORTER, 2 * (_KEY_BYTES + _SALT_BYTES))
            )

    def _drain(self) -> Iterator[bytes]:
        """Yield what OpenSSL has written, whole records to a datagram."""
        written = b""
        try:
            while True:
                written += self._connection.bio_read(65536)
        except SSL.WantReadError:
            pass
        start = end = 0
        while end + _RECORD_HEADER_BYTES <= len(written):
            size = _RECORD_HEADER_BYTES + int.from_bytes(written[end + 11 : end + 13])
            if end > start and end + size - start > _MTU_BYTES:
                yield written[start:end]
                start = end
            end += size
        if end > start:
            yield written[start:end]


def _split(material: bytes) -> SrtpKeys:
    """Split the exported material: both keys, then both salts, the client's first (RFC 5764 4.2)."""
    client_key, server_key = material[:_KEY_BYTES], material[_KEY_BYTES : 2 * _KEY_BYTES]
    salts = material[2 * _KEY_BYTES :]
    return SrtpKeys(
        SrtpKey(SRTP_SUITE, client_key + salts[:_SALT_BYTES]),
        SrtpKey(SRTP_SUITE, server_key + salts[_SALT_BYTES:]),
    )
