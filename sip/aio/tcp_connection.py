"""One connection to a peer, over TCP or TLS: framing, keep-alives, deadlines (RFC 3261 18.3)."""

import asyncio
import logging
import ssl
from collections import deque
from typing import TYPE_CHECKING, cast

from sip.aio.tls import TlsSession, describe
from sip.aio.transport import Address, Flow, Watcher
from sip.errors import ParseError
from sip.message.fields import Via
from sip.message.framer import PING, PONG, StreamFramer
from sip.message.message import serialise

if TYPE_CHECKING:
    from sip.aio.tcp import StreamLimits, TcpTransport

logger = logging.getLogger(__name__)

Key = tuple[str, int, str | None]
"""Key of a connection: the peer's host and port, and the name it had to prove."""


class Connection(asyncio.Protocol, Flow):
    """
    One connection: opening, established or broken.

    Its owner holds the table and the limits; without a `key` the peer opened it.
    """

    reliable = True

    def __init__(self, owner: "TcpTransport", remote: Address, key: Key | None) -> None:
        Flow.__init__(self, owner, remote)
        self._owner = owner
        self.outgoing = key is not None
        self.key: Key = key or (*remote, None)
        self.name: str | None = None
        self.peer_names: frozenset[str] = frozenset()
        self.transport_error: str | None = None
        self.aliases: tuple[Key, ...] | None = None
        """Further keys by which requests to the peer find it (RFC 5923); None until a request was seen."""
        self.watchers: set[Watcher] = set()
        self.broken = False
        self.established = False
        self.received_at = self._alive_at = owner.now()
        self._framer = StreamFramer(owner.message_limits)
        self._stream: asyncio.Transport | None = None
        self._tls: TlsSession | None = None
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self._holders = 0
        self._deadline: float | None = None
        self._partial_since: float | None = None
        self._pinged_at: float | None = None
        self._pongs = False

    # Interface of a flow.

    # A constant of other flows; here the listener decides. Read-only in both cases.
    @property
    def secure(self) -> bool:  # type: ignore[override]
        """True if encrypted to the next hop."""
        return self._owner.contexts is not None

    @property
    def closed(self) -> bool:
        """True after the connection has broken."""
        return self.broken

    @property
    def in_use(self) -> bool:
        """True if a transaction, dialog or registration needs it."""
        return bool(self.watchers) or self._holders > 0

    def send(self, data: bytes) -> bool:
        """Write one message, or queue it until the connection is established."""
        if self.broken:
            return False
        if not self.established:
            self._pending_bytes += len(data)
            if self._pending_bytes > self._owner.limits.max_unsent_bytes:
                return False
            self._pending.append(data)
            return True
        stream = self._stream
        assert stream is not None
        if stream.get_write_buffer_size() > self._owner.limits.max_unsent_bytes:
            self.transport_error = "The peer does not read"
            stream.abort()
            return False
        self._write(data)
        return not self.broken

    def watch(self, watcher: Watcher) -> None:
        """Call back when the connection breaks."""
        self.watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Undo `watch`."""
        self.watchers.discard(watcher)

    def hold(self) -> None:
        """Keep the connection open for a later user."""
        self._holders += 1

    def release(self) -> None:
        """Undo `hold`."""
        self._holders -= 1

    def note_via(self, via: Via) -> None:
        """Read the parameters of a request's top Via that describe the connection."""
        self._owner.note_via(self, via)

    def give_up(self, reason: str) -> None:
        """Stop opening the connection; queued messages are not sent."""
        if not self.established:
            self._break(reason)

    def abort(self) -> None:
        """Close at once, without notifying watchers."""
        self.broken = True
        self.watchers.clear()
        if self._stream is not None:
            self._stream.abort()
        self._owner.lost(self)

    def shut(self) -> None:
        """Close an unused connection cleanly."""
        if self.established and self._tls is not None and self._stream is not None:
            self._tls.finish()
        self._close()

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the new connection; start the handshake if it uses TLS."""
        # Not an isinstance check: the transports of uvloop only behave like those of asyncio.
        stream = cast(asyncio.Transport, transport)
        self._stream = stream
        if self.broken or not self._owner.admit(self, stream):
            stream.abort()
            self._forget()
            return
        limits = self._owner.limits
        contexts = self._owner.contexts
        if contexts is not None:
            self._tls = contexts.session((self.name or self.remote[0]) if self.outgoing else None)
        self._deadline = self._owner.now() + limits.first_message_s
        if self._tls is None:
            self._come_up()
        elif self.outgoing:
            self._deadline = self._owner.now() + limits.connect_timeout_s
            self._tls.shake_hands()
            self._flush()

    def data_received(self, data: bytes) -> None:
        """Decrypt, extract messages and answer keep-alives."""
        if self.broken:
            return
        if self._tls is not None:
            plain = self._decrypt(data)
            if not plain:
                return
            data = plain
        # Any data shows that the peer is alive.
        self._alive_at, self._pinged_at = self._owner.now(), None
        try:
            frames = self._framer.feed(data)
        except ParseError as error:
            self._refuse(error)
            return
        for frame in frames:
            if self.broken:
                return  # An earlier frame got its peer banned.
            self._take(frame)
        if self._framer.failure is not None:
            self._refuse(self._framer.failure)
        # A keep-alive is no message: a peer that sends nothing else loses its connection.
        self._time_message(any(frame not in (PING, PONG) for frame in frames))

    def _take(self, frame: bytes) -> None:
        if frame == PING:
            self.received_at = self._owner.now()
            self.send(PONG)
        elif frame == PONG:
            self._pongs = True
        else:
            self.received_at = self._owner.now()
            self._owner.deliver(frame, self)

    def _time_message(self, complete: bool) -> None:
        """Update the deadlines: the start of a partial message, and the first complete one."""
        if complete:
            self._deadline = None
            self._partial_since = None
        if not self._framer.buffered_bytes:
            self._partial_since = None
        elif self._partial_since is None:
            self._partial_since = self._owner.now()

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the loss of the connection."""
        if exc is not None and self.transport_error is None:
            self.transport_error = getattr(exc, "strerror", None) or str(exc) or None
        self._forget()

    def _forget(self) -> None:
        """Remove the connection from the table and notify its watchers, once."""
        if self.broken:
            return
        self.broken = True
        self._stream = None
        self._pending.clear()
        self._owner.lost(self)
        watchers, self.watchers = self.watchers, set()
        for watcher in watchers:
            watcher()

    # Establishment.

    def _come_up(self) -> None:
        self.established = True
        if self.outgoing:
            self._deadline = None
        while self._pending and not self.broken:
            self._write(self._pending.popleft())
        self._pending_bytes = 0

    def _decrypt(self, data: bytes) -> bytes | None:
        tls = self._tls
        assert tls is not None
        try:
            plain = tls.receive(data)
        except ssl.SSLError as error:
            self._flush()  # The alert tells the peer why.
            self._break(describe(error))
            return None
        self._flush()
        if tls.established and not self.established:
            self.peer_names = tls.peer_names
            contexts, host = self._owner.contexts, self.name or self.remote[0]
            wrong = contexts.judge(self.peer_names, host) if contexts is not None and self.outgoing else None
            if wrong is not None:
                self._break(wrong)
                return None
            self._come_up()
        if plain is None:
            self._close()
        return None if self.broken else plain

    def _break(self, reason: str) -> None:
        """Close because of an error, and log it."""
        if self.broken:
            return
        self.transport_error = reason
        host, port = self.remote
        who = f" ({self.name})" if self.name not in (None, host) else ""
        # An unknown source can break any number of connections, which deserves no log line each.
        unknown = not self.outgoing and self._owner.is_unknown(host)
        level = logging.WARNING if self.outgoing else logging.DEBUG if unknown else logging.INFO
        logger.log(
            level, "The %s connection with %s:%d%s is closed: %s", self._owner.name, host, port, who, reason
        )
        self._close()

    def _close(self) -> None:
        """Close after the written data was sent; watchers are notified at once."""
        stream = self._stream
        if stream is not None:
            self._flush()
            stream.close()
            self._owner.linger(stream)
        self._forget()

    # Writing.

    def _write(self, data: bytes) -> None:
        assert self._stream is not None
        if self._tls is None:
            self._stream.write(data)
            return
        try:
            self._tls.send(data)
        except ssl.SSLError as error:
            self._break(describe(error))
            return
        self._flush()

    def _flush(self) -> None:
        if self._tls is not None and self._stream is not None:
            output = self._tls.output
            if output:
                self._stream.write(output)

    def _refuse(self, error: ParseError) -> None:
        """Answer unframeable data where possible, and close: nothing after it can be read."""
        if self.broken:
            return
        answer = error.answer
        if answer is not None:
            answer.headers.stamp_via(*self.remote)
            self._write(serialise(answer))
        self._break(f"It cannot be framed any more: {error.reason}")

    # Periodic checks.

    def look_after(self, now: float) -> None:
        """Close the connection if it is too slow or idle; ping it if it is silent and in use."""
        limits = self._owner.limits
        if self._deadline is not None and now >= self._deadline:
            self._break("Nothing whole came in time" if self.established else "The handshake took too long")
        elif self._partial_since is not None and now >= self._partial_since + limits.message_s:
            self._break("A message was not complete in time")
        elif self._pinged_at is not None and self._pongs and now >= self._pinged_at + limits.pong_s:
            self._break("The peer answers keep-alives no more")
        elif not self.in_use:
            if self.received_at < now - limits.idle_s:
                self.shut()
        elif self.outgoing and self.established:
            self._keep_alive(now, limits)

    def _keep_alive(self, now: float, limits: "StreamLimits") -> None:
        """Send a ping; a peer that has never answered one need not (RFC 5626 4.4.1, RFC 3261 7.5)."""
        if not limits.keepalive_s or (self._pinged_at is not None and self._pongs):
            return
        if now >= self._alive_at + limits.keepalive_s:
            self._framer.expect_pong()
            self._alive_at = self._pinged_at = now
            self._write(b"\r\n\r\n")
