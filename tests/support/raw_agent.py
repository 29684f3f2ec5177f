"""An agent byte by byte, for what no WebSocket library would do."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import struct

__all__ = ["BINARY", "CLOSE", "CONTINUATION", "PING", "PONG", "TEXT", "RawAgent", "frame"]

TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10


def frame(
    opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, length: int | None = None
) -> bytes:
    """A frame as a server sends it; ``length`` is what its head says, if not the truth."""
    size = len(payload) if length is None else length
    head = bytes([fin << 7 | rsv << 4 | opcode])
    if size < 126:
        return head + bytes([size]) + payload
    if size < 1 << 16:
        return head + b"\x7e" + struct.pack(">H", size) + payload
    return head + b"\x7f" + struct.pack(">Q", size) + payload


class RawAgent:
    """The agent's end of a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def answer(self) -> bytes:
        """Read the request; the answer to it, not sent yet."""
        request = await self.reader.readuntil(b"\r\n\r\n")
        key = request.partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        return (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )

    async def accept(self) -> None:
        """Complete the handshake and read the two opening frames."""
        self.writer.write(await self.answer())
        # What goes wrong before the two opening frames counts as a failure to connect.
        for _ in range(2):
            await self.until(TEXT)

    async def read(self) -> tuple[int, bytes]:
        """The next frame: its opcode and its payload."""
        head = await self.reader.readexactly(2)
        size = head[1] & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", await self.reader.readexactly(2))
        assert head[1] & 0x80
        mask = await self.reader.readexactly(4)
        data = await self.reader.readexactly(size)
        return head[0] & 0x0F, bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))

    async def until(self, opcode: int) -> bytes:
        """The payload of the next frame of a kind."""
        while True:
            kind, data = await self.read()
            if kind == opcode:
                return data

    async def until_closed(self) -> int | None:
        """Read on; the code of the close frame, None when the connection ends without one."""
        try:
            data = await self.until(CLOSE)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return int.from_bytes(data[:2], "big")
