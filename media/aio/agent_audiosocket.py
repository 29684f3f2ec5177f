"""
The TCP connection of a stream of Asterisk's AudioSocket.

The protocol has neither pings nor close frames. An agent is alive as long as it takes what it is sent and
completes the frames that it begins; the end of its output ends the stream like a close frame with 1000.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

from media.aio.agent_dial import Resolve, dial_tcp
from media.aio.agent_send_queue import QueuedSocket
from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_socket import SocketListener
from media.streams import Dialect, StreamSetup
from media.streams.dialects.audiosocket import HEADER_BYTES, frame_length

_NORMAL = 1000

# A host that is gone is noticed also while it is sent nothing.
_KEEPALIVE_S = 5
_KEEPALIVE_PROBES = 2


async def open_audiosocket(
    listener: SocketListener,
    dialect: Dialect,
    setup: StreamSetup,
    settings: AgentStreamSettings,
    resolve: Resolve,
) -> None:
    """
    Connect to the agent of a stream; `on_open` gets the connection.

    Raises:
        StreamConnectError: It could not be opened.
    """
    sock = await dial_tcp(setup, resolve, settings.dial)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)
        await asyncio.get_running_loop().create_connection(
            lambda: AudioSocketConnection(listener, dialect, setup, settings), sock=sock
        )
    except BaseException:
        sock.close()
        raise


class AudioSocketConnection(QueuedSocket, asyncio.Protocol):
    """Cuts the agent's output into frames, each at most 64 KiB by its header, and sends by a queue."""

    def __init__(
        self, listener: SocketListener, dialect: Dialect, setup: StreamSetup, settings: AgentStreamSettings
    ) -> None:
        super().__init__(dialect, settings, (setup.encoding, setup.sample_rate))
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._frames = 0
        """Whole frames that the agent sent."""
        self._full = False
        self._asked: int | None = None
        """Frames that the agent had sent when it was last asked for a sign of life, while it owes one."""
        self._lost = asyncio.Event()

    # For the stream.

    def ping(self) -> None:
        """Ask for a sign of life: room in the socket, and the end of a frame that has begun."""
        self._asked = self._frames
        if not self._received:
            self._answer()

    def finish(self, last: bytes | None) -> None:
        """Send all waiting frames but audio, then a last frame."""
        self._queue.finish(last)
        self.pace.stop()

    def close(self, code: int, reason: str = "") -> None:
        """End our output: the agent gets what was written before, and then the end."""
        self.pace.stop()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()

    def disconnect(self) -> None:
        """End the connection after all output is written."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def wait_disconnected(self, timeout_s: float) -> None:
        """Wait for the end of the connection."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._lost.wait()

    # Callbacks of the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Report that the connection is open."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._queue.open(transport)
        self.pace.open(transport)
        self._listener.on_open(self)

    def data_received(self, data: bytes) -> None:
        """Dispatch all frames that are complete."""
        listener, received = self._listener, self._received
        received += data
        begin = 0
        while not listener.closed and len(received) - begin >= HEADER_BYTES:
            end = begin + frame_length(received[begin : begin + HEADER_BYTES])
            if end > len(received):
                break
            if not self.pace.read(end - begin):
                listener.on_abuse("too many frames")
                break
            self._frames += 1
            listener.on_binary(bytes(received[begin:end]))
            begin = end
        if listener.closed:
            received.clear()
        else:
            del received[:begin]
        if self._asked is not None and self._frames > self._asked:
            self._answer()

    def eof_received(self) -> bool:
        """Report the end of the agent's output; within a frame, it is the loss of the connection."""
        if self._received:
            return False
        self._listener.on_close(_NORMAL, "")
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Report the loss of the connection."""
        self.pace.stop()
        self._received.clear()
        self._lost.set()
        self._listener.on_lost(None)

    def pause_writing(self) -> None:
        """Report that the socket is full."""
        self._full = True
        self._queue.writable(False)

    def resume_writing(self) -> None:
        """Report that the socket takes data again."""
        self._full = False
        self._queue.writable(True)
        if self._asked is not None and not self._received:
            self._answer()

    def _answer(self) -> None:
        """Report the sign of life that is owed, unless the agent does not read."""
        if not self._full:
            self._asked = None
            self._loop.call_soon(self._listener.on_pong)
