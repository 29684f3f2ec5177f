"""One TLS session over bytes in memory: the connection moves them, this one knows what they mean."""

import ssl

from sip.certificates import names_of

__all__ = ["TlsSession", "describe"]

CHUNK_BYTES = 65536


class TlsSession:
    """
    The TLS state of one connection, on either side.

    What is received goes in by `receive`, what is to be sent by `send`; `output` is what has to be written
    after either.
    """

    __slots__ = ("_incoming", "_object", "_outgoing", "established")

    def __init__(self, context: ssl.SSLContext, *, server: bool, name: str | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server, server_hostname=name
        )
        self.established = False

    def start(self) -> None:
        """Begin the handshake: a client speaks first."""
        self._shake_hands()

    def receive(self, data: bytes) -> bytes | None:
        """
        Take bytes off the wire and give what they decrypt to; None once the peer has closed the session.

        Raises:
            ssl.SSLError: The session is broken; `output` may hold an alert for the peer.
        """
        self._incoming.write(data)
        if not self.established:
            self._shake_hands()
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
        """Encrypt; only once established."""
        self._object.write(data)

    def finish(self) -> None:
        """Tell the peer that nothing more comes."""
        try:
            self._object.unwrap()
        except (ssl.SSLError, ValueError):
            return  # Its own notice need not be waited for.

    @property
    def output(self) -> bytes:
        """What must be written to the peer; taken by reading it."""
        return self._outgoing.read() if self._outgoing.pending else b""

    @property
    def peer_names(self) -> frozenset[str]:
        """What the peer's certificate proves; nothing when there is none or it was not verified."""
        return names_of(self._object.getpeercert() or {})

    def _shake_hands(self) -> None:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return
        self.established = True


def describe(error: ssl.SSLError) -> str:
    """An error of TLS in words for a log line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    reason = error.reason or "the connection ended"
    return reason.lower().replace("_", " ")
