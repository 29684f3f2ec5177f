"""SIP over TLS: certificates, verified peer names and connection reuse (RFC 5922, RFC 5923)."""

import logging
import ssl
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from sip.aio.guard import Guard
from sip.aio.tcp import StreamLimits, TcpTransport
from sip.aio.tcp_connection import Connection, Key
from sip.aio.tls_session import TlsSession
from sip.aio.transport import Address, Flow, Listen, Receive
from sip.certificates import proves
from sip.message.fields import Via
from sip.message.parser import Limits

logger = logging.getLogger(__name__)


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

    def context(self, *, server: bool) -> ssl.SSLContext:
        """Return the context of connections from peers, or that of connections to peers."""
        self._refresh()
        return self._server if server else self._client

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


class TlsTransport(TcpTransport):
    """
    One listening TLS socket and all connections from and to peers.

    A connection that we open is keyed by the name its peer proved: the same address under another name gets
    another connection. One that a peer opened carries requests to it if the peer asks for that and its
    certificate proves its name.
    """

    name = "tls"
    secure = True
    default_port = 5061

    def __init__(
        self,
        listen: Listen,
        receive: Receive,
        limits: StreamLimits,
        message_limits: Limits,
        contexts: TlsContexts,
        guard: Guard | None = None,
    ) -> None:
        super().__init__(listen, receive, limits, message_limits, guard)
        self._contexts = contexts
        self._aliases: dict[Key, Connection] = {}

    def key_of(self, remote: Address, name: str | None) -> Key:
        """Return the key of a connection that was opened to a peer: its address and its proved name."""
        return (*remote, (name or remote[0]).lower())

    def session_for(self, connection: Connection) -> TlsSession | None:
        """Return the TLS session of a new connection."""
        if connection.outgoing:
            name = connection.name or connection.remote[0]
            return TlsSession(self._contexts.context(server=False), server=False, name=name)
        return TlsSession(self._contexts.context(server=True), server=True)

    def judge(self, connection: Connection) -> str | None:
        """Return what is wrong with the certificate of a server that we connected to, or None."""
        settings = self._contexts.settings
        if not connection.outgoing or not settings.verify_servers:
            return None
        host, names = connection.name or connection.remote[0], connection.peer_names
        if proves(names, host, wildcards=settings.wildcards):
            return None
        shown = ", ".join(sorted(names)[:5]) or "nobody"
        hint = ""
        if not settings.wildcards and proves(names, host, wildcards=True):
            hint = " (wildcards are not accepted)"
        return f"its certificate is for {shown}, not for {host}{hint}"

    def note_via(self, connection: Connection, via: Via) -> None:
        """
        Use a connection from a peer for requests to it, if it asks and has proved its name.

        Source: RFC 5923 5, 8.
        """
        if connection.aliases is not None or connection.outgoing or via.param("alias") is None:
            return
        connection.aliases = ()
        if proves(connection.peer_names, via.host):
            address = (connection.remote[0], via.port or self.default_port)
            connection.aliases = tuple(self.key_of(address, name) for name in connection.peer_names)
            self._aliases.update(dict.fromkeys(connection.aliases, connection))

    def flow_to(self, remote: Address, name: str | None = None) -> Flow:
        """Return the connection to a peer that proved a name, opening one if there is none."""
        if self._aliases:
            key = self.key_of(remote, name)
            connection = self._aliases.get(key)
            if connection is not None and key not in self._connections:
                return connection
        return super().flow_to(remote, name)

    def lost(self, connection: Connection) -> None:
        """Remove a connection from the table, under all its names."""
        super().lost(connection)
        for key in connection.aliases or ():
            if self._aliases.get(key) is connection:
                del self._aliases[key]
