"""
Framing of the byte stream of a TCP or TLS connection into messages.

Source: RFC 3261 7.5, 18.3, 20.14; RFC 5626 3.5.1 for the keep-alives.
"""

from __future__ import annotations

import re

from sip.errors import ParseError
from sip.message.parser import DEFAULT_LIMITS, Limits, answer_to, content_length, find_body

PING = b""
"""Marker that `StreamFramer.feed` returns for a keep-alive, to be answered by `PONG`."""

PONG = b"\r\n"

# The value may be folded, as any header field value. Nothing here can match in two ways, since input is
# searched before it is known to be within the limits.
_CONTENT_LENGTH = re.compile(
    rb"\n(?:content-length|l)[ \t]*:([^\r\n]*(?:\r?\n[ \t][^\r\n]*)*)(?=\r?\n)", re.IGNORECASE
)


class StreamFramer:
    """
    Receiving side of one stream; no I/O.

    Input larger than the limits is not kept. A framing error is final: the
    connection has to be closed.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._buffer = bytearray()
        self._scanned_bytes = 0  # No empty line ends before this offset.
        self._frame_bytes: int | None = None  # Size of the current frame, once its head is complete.
        self._failure: ParseError | None = None
        self._pong_expected = False

    @property
    def failure(self) -> ParseError | None:
        """The framing error, None while there is none; may be set together with the last messages."""
        return self._failure

    def expect_pong(self) -> None:
        """
        Expect an answer to our ping: `feed` returns `PONG` for the next line end between messages.

        Source: RFC 5626 4.4.1.
        """
        self._pong_expected = True

    @property
    def buffered_bytes(self) -> int:
        """Number of bytes of an incomplete message."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """
        Add received bytes and return the messages they complete, in order.

        A keep-alive (two line ends before a message) is returned as `PING`, an
        expected answer to one of ours as `PONG`. Messages completed before a
        framing error are still returned; the next call raises the error.

        Raises:
            ParseError: A message is too large, or has no single valid
                Content-Length; with the response to send, if any.
        """
        if self._failure is not None:
            raise self._failure
        self._buffer += data
        frames: list[bytes] = []
        try:
            while (frame := self._next()) is not None:
                frames.append(frame)
        except ParseError as error:
            self._failure = error
            self._buffer.clear()
            if not frames:
                raise
        return frames

    def _next(self) -> bytes | None:
        if self._frame_bytes is None:
            if not self._scanned_bytes and (line_ends := self._take_line_ends()) is not None:
                return line_ends
            self._frame_bytes = self._measure()
        if self._frame_bytes is None or len(self._buffer) < self._frame_bytes:
            return None
        frame = bytes(self._buffer[: self._frame_bytes])
        del self._buffer[: self._frame_bytes]
        self._scanned_bytes = 0
        self._frame_bytes = None
        return frame

    def _take_line_ends(self) -> bytes | None:
        """Drop line ends before a message; return the keep-alive they form, if any."""
        buffer = self._buffer
        while buffer.startswith((b"\r", b"\n")):
            if buffer.startswith(b"\r\n\r\n"):
                del buffer[:4]
                return PING
            if self._pong_expected and buffer.startswith(PONG):
                del buffer[:2]
                self._pong_expected = False
                return PONG
            if b"\r\n\r\n".startswith(buffer):
                break  # It may become a keep-alive.
            del buffer[: 2 if buffer.startswith(b"\r\n") else 1]
        return None

    def _measure(self) -> int | None:
        """Return the size of the message at the start of the buffer, None while its head is incomplete."""
        limit = self._limits.message_bytes
        if self._buffer.startswith((b"\r", b"\n")):
            return None  # Possibly half a keep-alive; no message starts with a line end.
        body = find_body(self._buffer, self._scanned_bytes)
        if body is None:
            if len(self._buffer) > limit:
                raise ParseError("Message too large", limit, status=513)
            # An empty line may have begun in the last two bytes.
            self._scanned_bytes = max(0, len(self._buffer) - 2)
            return None
        declared = _CONTENT_LENGTH.findall(self._buffer, 0, body)
        if len(declared) != 1:
            raise self._refusal(body, "A message on a stream needs one Content-Length")
        try:
            size = body + content_length(b" ".join(declared[0].split()).decode("latin-1"))
        except ParseError as error:
            raise self._refusal(body, error.reason) from None
        if size > limit:
            raise self._refusal(body, "Message too large", 513)
        return size

    def _refusal(self, body: int, reason: str, status: int = 400) -> ParseError:
        """Build the error for a message whose head is complete, with the response to send."""
        error = ParseError(reason, body, status=status)
        error.answer = answer_to(bytes(self._buffer[:body]), error)
        return error
