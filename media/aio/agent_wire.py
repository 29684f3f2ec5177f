"""WebSocket frames assembled into messages, with limits against hostile agents."""

from __future__ import annotations

from typing import Protocol

import picows
from picows import WSMsgType

__all__ = ["AgentWire", "WireEvents"]

_TEXT = WSMsgType.TEXT
_BINARY = WSMsgType.BINARY
_CONTINUATION = WSMsgType.CONTINUATION
_PING = WSMsgType.PING
_PONG = WSMsgType.PONG
_CLOSE = WSMsgType.CLOSE

_PROTOCOL_ERROR = 1002
_MESSAGE_TOO_BIG = 1009


class WireEvents(Protocol):
    """Receiver of the events of a socket."""

    def on_open(self, transport: picows.WSTransport) -> None:
        """Set the socket after the handshake."""

    def on_frame(self, size: int) -> None:
        """Count a frame of any kind, before it is handled."""

    def on_text(self, data: bytes) -> None:
        """Handle a text message."""

    def on_binary(self, data: bytes) -> None:
        """Handle a binary message."""

    def on_ping(self, payload: bytes) -> None:
        """Answer the agent's ping."""

    def on_pong(self) -> None:
        """Handle the answer to our ping."""

    def on_close(self, code: int, reason: str) -> None:
        """Handle the agent's close frame."""

    def on_violation(self, code: int, reason: str) -> None:
        """Close: the agent broke the protocol, or a limit."""

    def on_lost(self, code: int | None) -> None:
        """Handle the loss of the connection; `code` is the close code that the library sent, if any."""

    def on_writable(self, writable: bool) -> None:
        """Handle a change of the socket's readiness for data."""


class AgentWire(picows.WSListener):
    """Listener of one socket; joins fragments (RFC 6455 5.4) and bounds their sum."""

    def __init__(self, events: WireEvents, max_message_bytes: int) -> None:
        super().__init__()
        self._events = events
        self._max_message_bytes = max_message_bytes
        self._fragments: bytearray | None = None
        self._fragments_are_text = False

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        """Report that the handshake is complete."""
        self._events.on_open(transport)

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """Dispatch a frame by its type."""
        self._events.on_frame(frame.payload_size)
        kind = frame.msg_type
        if frame.payload_size > self._max_message_bytes:
            # The library closes on the header of a frame that is too long, but delivers it nevertheless.
            self._events.on_violation(_MESSAGE_TOO_BIG, "message too long")
        elif frame.rsv1 or frame.rsv2 or frame.rsv3:
            # No extension was offered (RFC 6455 5.2).
            self._events.on_violation(_PROTOCOL_ERROR, "reserved bit set")
        elif kind == _TEXT and frame.fin and self._fragments is None:
            self._events.on_text(frame.get_payload_as_bytes())
        elif kind == _BINARY and frame.fin and self._fragments is None:
            self._events.on_binary(frame.get_payload_as_bytes())
        elif kind in (_TEXT, _BINARY, _CONTINUATION):
            self._data(kind, frame)
        elif kind == _PING:
            self._events.on_ping(frame.get_payload_as_bytes())
        elif kind == _PONG:
            self._events.on_pong()
        elif kind == _CLOSE:
            self._events.on_close(frame.get_close_code().value, frame.get_close_reason() or "")

    def _data(self, kind: WSMsgType, frame: picows.WSFrame) -> None:
        fragments = self._fragments
        if (kind == _CONTINUATION) == (fragments is None):
            self._events.on_violation(_PROTOCOL_ERROR, "fragments out of order")
            return
        if fragments is None:
            fragments = self._fragments = bytearray()
            self._fragments_are_text = kind == _TEXT
        if len(fragments) + frame.payload_size > self._max_message_bytes:
            self._events.on_violation(_MESSAGE_TOO_BIG, "message too long")
            return
        fragments += frame.get_payload_as_memoryview()
        if frame.fin:
            self._fragments = None
            if self._fragments_are_text:
                self._events.on_text(bytes(fragments))
            else:
                self._events.on_binary(bytes(fragments))

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        """Report the loss of the connection."""
        handshake = transport.close_handshake
        sent = handshake.sent if handshake is not None else None
        self._events.on_lost(sent.code.value if sent is not None else None)

    def pause_writing(self) -> None:
        """Report that the socket is full."""
        self._events.on_writable(False)

    def resume_writing(self) -> None:
        """Report that the socket takes data again."""
        self._events.on_writable(True)
