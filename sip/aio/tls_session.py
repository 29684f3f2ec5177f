"""One TLS session over memory buffers; the connection moves the bytes."""

import ssl

from sip.certificates import names_of

CHUNK_BYTES = 65536


class TlsSession:
    """
    The TLS state of one connection, on either side.

    `receive` takes bytes from the wire, `send` bytes to encrypt; `output` must be written after either.
    """

    __slots__ = ("_incoming", "_object", "_outgoing", "established")

    def __init__(self, context: ssl.SSLContext, *, server: bool, name: str | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server, server_hostname=name
        )
        self.established = False

    def receive(self, data: bytes) -> bytes | None:
        """
        Decrypt bytes from the wire; returns None once the peer has closed the session.

        Raises:
            ssl.SSLError: The session has failed; `output` may hold an alert for the peer.
        """
        self._incoming.write(data)
        if not self.established:
            self.shake_hands()
            if not self.established:
                return b""
        parts: list[bytes] = []
        try:
            while part := self._object.read(CHUNK_BYTES):
                parts.append(part)
        except ssl.SSLWantReadError:
            return b"".join(parts)
        except ssl.SSLZeroReturnError:
            pass
        return b"".join(parts) or None

    def send(self, data: bytes) -> None:
        """Encrypt data; only after the handshake."""
        self._object.write(data)

    def finish(self) -> None:
        """Send the peer a close notification."""
        try:
            self._object.unwrap()
        except (ssl.SSLError, ValueError):
            return  # The peer's own close notification need not be awaited.

    @property
    def output(self) -> bytes:
        """Bytes to write to the peer; reading them removes them."""
        return self._outgoing.read() if self._outgoing.pending else b""

    @property
    def peer_names(self) -> frozenset[str]:
        """Names that the peer's certificate proves; empty when it is absent or was not verified."""
        return names_of(self._object.getpeercert() or {})

    def shake_hands(self) -> None:
        """Start or continue the handshake; the client starts it."""
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return
        self.established = True


def describe(error: ssl.SSLError) -> str:
    """Return the text of a TLS error for a log line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    reason = error.reason or "the connection ended"
    return reason.lower().replace("_", " ")
