"""The socket of a stream in Python: TLS, and whatever the engine does not carry."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import picows
from picows import WSMsgType

from media.aio.agent_send_queue import QueuedSocket
from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_socket import SocketListener
from media.streams import Dialect, Encoding

_TEXT = WSMsgType.TEXT
_BINARY = WSMsgType.BINARY
_CONTINUATION = WSMsgType.CONTINUATION
_PING = WSMsgType.PING
_PONG = WSMsgType.PONG
_CLOSE = WSMsgType.CLOSE

_PROTOCOL_ERROR = 1002
_MESSAGE_TOO_BIG = 1009


class AgentWebSocket(QueuedSocket, picows.WSListener):
    """
    One socket of the library: joins fragments (RFC 6455 5.4) and bounds their sum, and sends by a queue.

    The listener's `on_open` is called with it when the handshake is complete.
    """

    def __init__(
        self,
        listener: SocketListener,
        dialect: Dialect,
        settings: AgentStreamSettings,
        audio_format: tuple[Encoding, int],
    ) -> None:
        super().__init__(dialect, settings, audio_format)
        self._listener = listener
        self._settings = settings
        self._max_message_bytes = settings.dial.max_message_bytes
        self._transport: picows.WSTransport | None = None
        self._fragments: bytearray | None = None
        self._fragments_are_text = False
        self._collecting: asyncio.Task[None] | None = None

    # For the stream.

    def ping(self) -> None:
        """Send a ping."""
        self._queue.ping()

    def finish(self, last: bytes | None) -> None:
        """Send all waiting frames but audio, then a last frame."""
        self._queue.finish(last)
        # The answer to a close frame must still be read.
        self.pace.stop()

    def close(self, code: int, reason: str = "") -> None:
        """Send a close frame."""
        assert self._transport is not None
        self.pace.stop()
        self._transport.send_close(code, reason)  # type: ignore[arg-type]  # Any code fits; the stub knows only the names.

    def disconnect(self) -> None:
        """End the connection after all output is written."""
        assert self._transport is not None
        self._transport.disconnect()

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.disconnect(False)

    async def wait_disconnected(self, timeout_s: float) -> None:
        """Wait for the end of the connection."""
        assert self._transport is not None
        with suppress(TimeoutError, picows.WSError):
            async with asyncio.timeout(timeout_s):
                await self._transport.wait_disconnected()

    # Callbacks of the library.

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        """Report that the handshake is complete."""
        self._transport = transport
        self._queue.open(transport)
        self.pace.open(transport.underlying_transport)
        self._listener.on_open(self)

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """Dispatch a frame by its type."""
        listener = self._listener
        if not listener.closed and not self.pace.read(frame.payload_size):
            listener.on_abuse("too many frames")
        kind = frame.msg_type
        if frame.payload_size > self._max_message_bytes:
            # The library closes on the header of a frame that is too long, but delivers it nevertheless.
            listener.on_violation(_MESSAGE_TOO_BIG, "message too long")
        elif frame.rsv1 or frame.rsv2 or frame.rsv3:
            # No extension was offered (RFC 6455 5.2).
            listener.on_violation(_PROTOCOL_ERROR, "reserved bit set")
        elif kind == _TEXT and frame.fin and self._fragments is None:
            listener.on_text(frame.get_payload_as_bytes())
        elif kind == _BINARY and frame.fin and self._fragments is None:
            listener.on_binary(frame.get_payload_as_bytes())
        elif kind in (_TEXT, _BINARY, _CONTINUATION):
            self._data(kind, frame)
        else:
            self._control(kind, frame)

    def _control(self, kind: WSMsgType, frame: picows.WSFrame) -> None:
        if kind == _PING:
            if not self._listener.closed:
                self._queue.pong(frame.get_payload_as_bytes())
        elif kind == _PONG:
            self._listener.on_pong()
        elif kind == _CLOSE:
            self._listener.on_close(frame.get_close_code().value, frame.get_close_reason() or "")

    def _data(self, kind: WSMsgType, frame: picows.WSFrame) -> None:
        fragments = self._fragments
        if (kind == _CONTINUATION) == (fragments is None):
            self._listener.on_violation(_PROTOCOL_ERROR, "fragments out of order")
            return
        if fragments is None:
            fragments = self._fragments = bytearray()
            self._fragments_are_text = kind == _TEXT
        if len(fragments) + frame.payload_size > self._max_message_bytes:
            self._listener.on_violation(_MESSAGE_TOO_BIG, "message too long")
            return
        fragments += frame.get_payload_as_memoryview()
        if frame.fin:
            self._fragments = None
            if self._fragments_are_text:
                self._listener.on_text(bytes(fragments))
            else:
                self._listener.on_binary(bytes(fragments))

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        """Report the loss of the connection."""
        self.pace.stop()
        handshake = transport.close_handshake
        sent = handshake.sent if handshake is not None else None
        # The library would report the outcome of the connection as not retrieved.
        self._collecting = self._loop.create_task(self.wait_disconnected(self._settings.close_timeout_s))
        self._listener.on_lost(sent.code.value if sent is not None else None)

    def pause_writing(self) -> None:
        """Report that the socket is full."""
        self._queue.writable(False)

    def resume_writing(self) -> None:
        """Report that the socket takes data again."""
        self._queue.writable(True)
