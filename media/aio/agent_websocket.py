"""WebSocket frames assembled into messages, with limits against hostile agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import picows
from picows import WSMsgType

if TYPE_CHECKING:
    from media.aio.agent_stream import AgentStream


_TEXT = WSMsgType.TEXT
_BINARY = WSMsgType.BINARY
_CONTINUATION = WSMsgType.CONTINUATION
_PING = WSMsgType.PING
_PONG = WSMsgType.PONG
_CLOSE = WSMsgType.CLOSE

_PROTOCOL_ERROR = 1002
_MESSAGE_TOO_BIG = 1009


class AgentWebSocket(picows.WSListener):
    """Listener of one socket; joins fragments (RFC 6455 5.4) and bounds their sum."""

    def __init__(self, stream: AgentStream, max_message_bytes: int) -> None:
        super().__init__()
        self._stream = stream
        self._max_message_bytes = max_message_bytes
        self._fragments: bytearray | None = None
        self._fragments_are_text = False

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        """Report that the handshake is complete."""
        self._stream.on_open(transport)

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """Dispatch a frame by its type."""
        self._stream.on_frame(frame.payload_size)
        kind = frame.msg_type
        if frame.payload_size > self._max_message_bytes:
            # The library closes on the header of a frame that is too long, but delivers it nevertheless.
            self._stream.on_violation(_MESSAGE_TOO_BIG, "message too long")
        elif frame.rsv1 or frame.rsv2 or frame.rsv3:
            # No extension was offered (RFC 6455 5.2).
            self._stream.on_violation(_PROTOCOL_ERROR, "reserved bit set")
        elif kind == _TEXT and frame.fin and self._fragments is None:
            self._stream.on_text(frame.get_payload_as_bytes())
        elif kind == _BINARY and frame.fin and self._fragments is None:
            self._stream.on_binary(frame.get_payload_as_bytes())
        elif kind in (_TEXT, _BINARY, _CONTINUATION):
            self._data(kind, frame)
        elif kind == _PING:
            self._stream.on_ping(frame.get_payload_as_bytes())
        elif kind == _PONG:
            self._stream.on_pong()
        elif kind == _CLOSE:
            self._stream.on_close(frame.get_close_code().value, frame.get_close_reason() or "")

    def _data(self, kind: WSMsgType, frame: picows.WSFrame) -> None:
        fragments = self._fragments
        if (kind == _CONTINUATION) == (fragments is None):
            self._stream.on_violation(_PROTOCOL_ERROR, "fragments out of order")
            return
        if fragments is None:
            fragments = self._fragments = bytearray()
            self._fragments_are_text = kind == _TEXT
        if len(fragments) + frame.payload_size > self._max_message_bytes:
            self._stream.on_violation(_MESSAGE_TOO_BIG, "message too long")
            return
        fragments += frame.get_payload_as_memoryview()
        if frame.fin:
            self._fragments = None
            if self._fragments_are_text:
                self._stream.on_text(bytes(fragments))
            else:
                self._stream.on_binary(bytes(fragments))

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        """Report the loss of the connection."""
        handshake = transport.close_handshake
        sent = handshake.sent if handshake is not None else None
        self._stream.on_lost(sent.code.value if sent is not None else None)

    def pause_writing(self) -> None:
        """Report that the socket is full."""
        self._stream.on_writable(False)

    def resume_writing(self) -> None:
        """Report that the socket takes data again."""
        self._stream.on_writable(True)
