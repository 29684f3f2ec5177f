"""Frames of a WebSocket turned into messages, with the limits that keep a hostile agent harmless."""

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
    """Who is told what happens on the wire."""

    def on_open(self, transport: picows.WSTransport) -> None:
        """Take the socket: the handshake is complete."""

    def on_frame(self, size: int) -> None:
        """Note that a frame of any kind was read, before it is taken."""

    def on_text(self, data: bytes) -> None:
        """Take a text message."""

    def on_binary(self, data: bytes) -> None:
        """Take a binary message."""

    def on_ping(self, payload: bytes) -> None:
        """Answer the agent's ping."""

    def on_pong(self) -> None:
        """Note the answer to our ping."""

    def on_close(self, code: int, reason: str) -> None:
        """Note the agent's close frame."""

    def on_violation(self, code: int, reason: str) -> None:
        """Close: the agent broke the protocol, or a limit."""

    def on_lost(self, code: int | None) -> None:
        """Note that the connection is gone; `code` is what the library itself closed it with."""

    def on_writable(self, writable: bool) -> None:
        """Note whether the socket takes more."""


class AgentWire(picows.WSListener):
    """Listener of one socket; joins fragments (RFC 6455 5.4) and bounds their sum."""

    def __init__(self, events: WireEvents, max_message_bytes: int) -> None:
        super().__init__()
        self._events = events
        self._max_message_bytes = max_message_bytes
        self._fragments: bytearray | None = None
        self._fragments_are_text = False

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        """Pass on that the handshake is complete."""
        self._events.on_open(transport)

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """Sort a frame."""
        self._events.on_frame(frame.payload_size)
        kind = frame.msg_type
        if frame.payload_size > self._max_message_bytes:
            # The library closes on the header of such a frame, and delivers the frame all the same.
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
        """Pass on that the connection is gone."""
        handshake = transport.close_handshake
        sent = handshake.sent if handshake is not None else None
        self._events.on_lost(sent.code.value if sent is not None else None)

    def pause_writing(self) -> None:
        """Pass on that the socket takes no more."""
        self._events.on_writable(False)

    def resume_writing(self) -> None:
        """Pass on that the socket takes more again."""
        self._events.on_writable(True)
