"""TLS of one connection over memory buffers, and the certificates, ours and those of peers (RFC 5922)."""

import logging
import ssl
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from sip.certificates import names_of, proves

logger = logging.getLogger(__name__)

CHUNK_BYTES = 65536


class ClientCertificates(Enum):
    """Policy for the certificates of peers that connect to us."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """
    Our certificate and the peers' certificates that we accept.

    `authorities` is a PEM file of trust anchors for peers; None means those of the system. Without
    `verify_servers`, connections that we open are encrypted but not authenticated. `wildcards` accepts
    `*.example.net` for the hosts of a domain, which RFC 5922 7.2 forbids but some carriers' certificates use.
    """

    certificate: Path
    key: Path
    authorities: Path | None = None
    verify_servers: bool = True
    clients: ClientCertificates = ClientCertificates.NONE
    wildcards: bool = False


class TlsSession:
    """
    The TLS state of one connection, on either side.

    `receive` takes bytes from the wire, `send` bytes to encrypt; `output` must be written after either.
    """

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


class TlsContexts:
    """
    TLS contexts of new sessions, reloaded when one of the files has changed.

    Raises:
        ValueError: On construction, when a file cannot be read or has the wrong content.
    """

    def __init__(self, settings: TlsSettings) -> None:
        self.settings = settings
        try:
            self._stamp = self._files_stamp()
            self._server, self._client = self._load()
        except OSError as error:
            raise ValueError(f"{error.filename or settings.certificate}: {error.strerror}") from None

    def session(self, server_name: str | None) -> TlsSession:
        """Return the session of a new connection: to the server of this name, or with None from a peer."""
        self._refresh()
        if server_name is None:
            return TlsSession(self._server, server=True)
        return TlsSession(self._client, server=False, name=server_name)

    def judge(self, names: Collection[str], host: str) -> str | None:
        """Return what is wrong with the certificate of a server that proves these names, or None."""
        wildcards = self.settings.wildcards
        if not self.settings.verify_servers or proves(names, host, wildcards=wildcards):
            return None
        shown = ", ".join(sorted(names)[:5]) or "nobody"
        hint = ""
        if not wildcards and proves(names, host, wildcards=True):
            hint = " (wildcards are not accepted)"
        return f"its certificate is for {shown}, not for {host}{hint}"

    def _files_stamp(self) -> tuple[tuple[int, int], ...]:
        settings = self.settings
        paths = (settings.certificate, settings.key, settings.authorities)
        stats = [path.stat() for path in paths if path is not None]
        return tuple((stat.st_mtime_ns, stat.st_ino) for stat in stats)

    def _refresh(self) -> None:
        try:
            stamp = self._files_stamp()
            if stamp == self._stamp:
                return
            self._server, self._client = self._load()
        except (OSError, ValueError) as error:
            logger.error("Cannot reload the TLS certificate; the old one stays in use: %s", error)
            return
        self._stamp = stamp
        logger.info("The TLS certificate was reloaded")

    def _load(self) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        settings = self.settings
        server = _context(ssl.PROTOCOL_TLS_SERVER, settings)
        if settings.clients is not ClientCertificates.NONE:
            _trust(server, settings)
            required = settings.clients is ClientCertificates.REQUIRED
            server.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
        client = _context(ssl.PROTOCOL_TLS_CLIENT, settings)
        client.check_hostname = False  # The names are compared by RFC 5922, which is stricter.
        if settings.verify_servers:
            _trust(client, settings)
        else:
            client.verify_mode = ssl.CERT_NONE
        return server, client


def _context(protocol: int, settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # Its only use is to cause us work.
    try:
        context.load_cert_chain(settings.certificate, settings.key)
    except ssl.SSLError as error:
        files = f"{settings.certificate} and {settings.key}"
        reason = (error.reason or "no PEM").lower().replace("_", " ")
        raise ValueError(f"{files} are not a certificate with its key: {reason}") from None
    return context


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.authorities is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return
    try:
        context.load_verify_locations(settings.authorities)
    except ssl.SSLError:
        raise ValueError(f"{settings.authorities} has no certificates in PEM") from None


def describe(error: ssl.SSLError) -> str:
    """Return the text of a TLS error for a log line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    reason = error.reason or "the connection ended"
    return reason.lower().replace("_", " ")
