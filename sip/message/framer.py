"""
Cut the byte stream of a TCP or TLS connection into messages.

Source: RFC 3261 7.5, 18.3, 20.14; RFC 5626 3.5.1 for the keep-alives.
"""

from __future__ import annotations

import re

from sip.errors import ParseError
from sip.message.parser import DEFAULT_LIMITS, Limits, answer_to, content_length, find_body

__all__ = ["PING", "PONG", "StreamFramer"]

PING = b""
"""What `StreamFramer.feed` returns in place of a message for a keep-alive, to be answered by `PONG`."""

PONG = b"\r\n"

# The value may be folded, as any header field value may. Nothing in here can match in two ways: what a peer
# sends is searched before it is known to be within the limits.
_CONTENT_LENGTH = re.compile(
    rb"\n(?:content-length|l)[ \t]*:([^\r\n]*(?:\r?\n[ \t][^\r\n]*)*)(?=\r?\n)", re.IGNORECASE
)


class StreamFramer:
    """
    The receiving side of one stream; no I/O.

    Nothing larger than the limits is kept. Once the stream cannot be framed
    any more there is no way back, and the connection has to be closed.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._buffer = bytearray()
        self._scanned_bytes = 0  # No empty line ends before this offset.
        self._frame_bytes: int | None = None  # Size of the frame in progress, once its head is complete.
        self._failure: ParseError | None = None
        self._pong_expected = False

    @property
    def failure(self) -> ParseError | None:
        """Why the stream cannot be framed any more; it may come with the last messages before."""
        return self._failure

    def expect_pong(self) -> None:
        """
        Take the next line end between messages for the answer to a ping of ours: `feed` returns `PONG`.

        Source: RFC 5626 4.4.1.
        """
        self._pong_expected = True

    @property
    def buffered_bytes(self) -> int:
        """Bytes of a message that is not complete yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """
        Take what was received and return the messages it completes, in order.

        A keep-alive (two line ends before a message) comes as `PING`, the answer
        to one of ours, when one is expected, as `PONG`. Messages
        that were complete before the stream went wrong are still returned; the
        error is then raised by the next call.

        Raises:
            ParseError: A message is too large, or has no Content-Length that
                says where it ends; with the response it deserves, if any.
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
        """Drop line ends before a message; which keep-alive they were, if one."""
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
                break  # It may become one.
            del buffer[: 2 if buffer.startswith(b"\r\n") else 1]
        return None

    def _measure(self) -> int | None:
        """Size of the message at the start of the buffer, None while its head is incomplete."""
        limit = self._limits.message_bytes
        if self._buffer.startswith((b"\r", b"\n")):
            return None  # Perhaps half a keep-alive; no message begins so.
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
        """The error for a message whose head is there, with the response that it deserves."""
        error = ParseError(reason, body, status=status)
        error.answer = answer_to(bytes(self._buffer[:body]), error)
        return error
