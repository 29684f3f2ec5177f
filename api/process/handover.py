"""
Hot restart: a new server takes over the sockets of the running one on the same machine; no call is lost.

The previous server passes its sockets over a Unix socket in the data directory; waiting connections and
received datagrams stay in them for the new server. The new server forwards messages for calls of the
previous one until its last call has ended. Both use one database, each with its own node.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol

from api.process.failures import StartFailed
from sip.aio import HandedOverState, SendFrame

__all__ = ["HandoverSource", "HotRestart"]

_log = logging.getLogger("api.process.handover")

_SOCKET_NAME: Final = "takeover.sock"
OnGone = Callable[[str | None], Awaitable[None]]

_HEAD: Final = struct.Struct(">IB")
_HELLO, _NODE, _TAKE, _SOCKETS, _STATE, _READY, _PASSED, _ANSWER, _GOODBYE = range(9)
_MOST_SOCKETS: Final = 64
_MOST_FRAME_BYTES: Final = 16 * 1024 * 1024
_DROPPED: Final = frozenset((_PASSED, _ANSWER))
"""Frames that are dropped when the other process does not read."""
_PATIENCE_S: Final = 10.0
_MOST_UNSENT_BYTES: Final = 8 * 1024 * 1024
"""Above this, forwarded messages are dropped, as datagrams may be."""


class HandoverSource(Protocol):
    """State that a server hands over, and may get back."""

    async def hand_over(self) -> HandedOverState:
        """Stop receiving on all addresses, and return the state that another process needs to take over."""

    async def take_back(self) -> None:
        """Resume receiving: the other process has ended."""

    def receive(self, frame: bytes, answer: SendFrame) -> None:
        """Handle a SIP message that the other process forwards."""


class _Channel:
    """Frame connection between both processes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, kind: int, payload: bytes = b"") -> None:
        room = self._writer.transport.get_write_buffer_size() < _MOST_UNSENT_BYTES
        if room or kind not in _DROPPED:
            self._writer.write(_HEAD.pack(len(payload), kind) + payload)

    async def next(self) -> tuple[int, bytes] | None:
        """Read the next frame; None when the other process has ended or sends an invalid frame."""
        try:
            length, kind = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
            if length > _MOST_FRAME_BYTES:
                _log.warning("the other process uses another version of this protocol")
                return None
            return kind, await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            return None

    async def close(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return  # The other process closed it first.


class HotRestart:
    """
    Handover from the previous server to this one, and from this one to the next.

    Attributes:
        taken: Set when the next server is ready; this one then drains and ends.
        previous_node: Node of the previous server; empty without one.
    """

    def __init__(self, folder: Path, node: str) -> None:
        self.taken = asyncio.Event()
        self._folder = folder
        self._node = node
        self.previous_node = ""
        self._handed: HandedOverState | None = None
        self._previous: _Channel | None = None
        self._next: _Channel | None = None
        self._listener: socket.socket | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    # --- new server -----------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """
        Look for a running server to take over from; finding none is not a failure.

        Raises:
            StartFailed: It has the same node, so each would treat the other's calls as lost.
        """
        link = await self._dial_previous()
        if link is None:
            return
        link.close()
        if self.previous_node == self._node:
            raise StartFailed(
                f"the server that runs has the node {self._node} too: to take over from it, set "
                "TRUNKLINE_NODE to another name"
            )

    async def take(self) -> HandedOverState | None:
        """
        Obtain the sockets of the previous server, which resumes on them if this one does not start.

        Returns None without a previous server.

        Raises:
            StartFailed: The previous server did not hand over its sockets.
        """
        link = await self._dial_previous() if self.previous_node else None
        if link is None:
            return None
        try:
            self._handed = await asyncio.to_thread(_receive_state, link)
            link.setblocking(False)
            self._previous = _Channel(*await asyncio.open_unix_connection(sock=link))
        except (OSError, ValueError) as error:
            link.close()
            raise StartFailed(f"the server that runs did not hand over its addresses: {error}") from error
        _log.info("took over %s from %s", ", ".join(self._handed.sockets), self.previous_node)
        return self._handed

    async def _dial_previous(self) -> socket.socket | None:
        """Connect to the running server and ask for its node; None when none runs."""
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(_PATIENCE_S)
        try:
            await asyncio.to_thread(_at_socket, self._folder, link.connect)
            self.previous_node = (await asyncio.to_thread(_ask, link, _HELLO, self._node.encode())).decode()
        except (OSError, ValueError):
            link.close()
            return None
        return link

    def inherited(self, name: str) -> socket.socket | None:
        """Socket of the previous server by its name."""
        return None if self._handed is None else self._handed.sockets.get(name)

    def forward(self, frame: bytes) -> None:
        """Forward a message that belongs to the previous server."""
        if self._previous is not None:
            self._previous.send(_PASSED, frame)

    def ready(
        self, on_answer: Callable[[bytes], None], on_gone: Callable[[str | None], Awaitable[None]]
    ) -> None:
        """
        Tell the previous server that it may drain and end.

        Args:
            on_answer: Receives its messages for our connections.
            on_gone: Called when it has ended; with its node if it died with active calls, else None.
        """
        if self._previous is not None:
            self._previous.send(_READY)
            self._spawn(self._follow(self._previous, on_answer, on_gone))

    async def _follow(
        self,
        previous: _Channel,
        on_answer: SendFrame,
        on_gone: OnGone,
    ) -> None:
        well = False
        while (frame := await previous.next()) is not None:
            kind, payload = frame
            if kind == _ANSWER:
                with _unread_is_lost():
                    on_answer(payload)
            well = well or kind == _GOODBYE
        self._previous = None
        await previous.close()
        _log.info("%s has ended%s", self.previous_node, "" if well else " without ending its calls")
        await on_gone(None if well else self.previous_node)

    # --- previous server ------------------------------------------------------------------------------------

    async def listen(self, source: HandoverSource) -> None:
        """
        Listen for the next server.

        Raises:
            StartFailed: The Unix socket cannot be bound.
        """
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.setblocking(False)
        try:
            await asyncio.to_thread(self._remove_socket)
            await asyncio.to_thread(_at_socket, self._folder, listener.bind)
            (self._folder / _SOCKET_NAME).chmod(0o600)
            listener.listen(1)
        except OSError as error:
            listener.close()
            raise StartFailed(
                f"cannot listen on {self._folder / _SOCKET_NAME}: {error.strerror or error}"
            ) from error
        self._listener = listener
        self._spawn(self._accept(listener, source))

    async def _accept(self, listener: socket.socket, source: HandoverSource) -> None:
        loop = asyncio.get_running_loop()
        while not self.taken.is_set():
            link, _ = await loop.sock_accept(listener)
            try:
                await self._serve(link, source)
            except (OSError, ValueError) as error:
                _log.info("a connection of another server failed: %s", error)
            finally:
                link.close()

    async def _serve(self, link: socket.socket, source: HandoverSource) -> None:
        link.settimeout(_PATIENCE_S)
        node = (await asyncio.to_thread(_expect, link, _HELLO)).decode()
        await asyncio.to_thread(_put, link, _NODE, self._node.encode())
        await asyncio.to_thread(_expect, link, _TAKE)
        handed = await source.hand_over()
        try:
            await asyncio.to_thread(_send_state, link, handed)
            link.setblocking(False)
            successor = _Channel(*await asyncio.open_unix_connection(sock=link.dup()))
            _log.info("handing over to %s", node)
            await self._forward_to(successor, source)
        finally:
            self._next = None
            if not self._closing:
                # It did not start or ended first: we must receive for our calls, and perhaps new ones.
                _log.warning("%s has ended; this server receives again", node)
                await source.take_back()

    async def _forward_to(self, successor: _Channel, source: HandoverSource) -> None:
        self._next = successor
        answer = _sender(successor)
        try:
            while (frame := await successor.next()) is not None:
                kind, payload = frame
                if kind == _PASSED:
                    with _unread_is_lost():
                        source.receive(payload, answer)
                elif kind == _READY:
                    self.taken.set()
        finally:
            # Else it would go on receiving beside this server.
            await successor.close()

    # --- both -----------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Tell the next server that this one ends properly, and stop."""
        self._closing = True
        successor, self._next = self._next, None
        if successor is not None:
            successor.send(_GOODBYE)
            await successor.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._listener is not None:
            self._listener.close()
            if not self.taken.is_set():
                await asyncio.to_thread(self._remove_socket)
        if self._previous is not None:
            await self._previous.close()

    def _remove_socket(self) -> None:
        (self._folder / _SOCKET_NAME).unlink(missing_ok=True)

    def _spawn(self, work: Any) -> None:
        self._tasks.append(asyncio.create_task(work, name="hot-restart"))


def _sender(channel: _Channel) -> SendFrame:
    def send(frame: bytes) -> None:
        channel.send(_ANSWER, frame)

    return send


@contextlib.contextmanager
def _unread_is_lost() -> Iterator[None]:
    """Drop a frame that cannot be parsed, like a lost datagram, instead of failing both processes."""
    try:
        yield
    except ValueError as error:
        _log.warning("unreadable message from the other process: %s", error)


def _at_socket(folder: Path, use: Callable[[str], object]) -> None:
    """Bind or connect a Unix socket in a folder, whatever the length of the folder's path."""
    descriptor = os.open(folder, os.O_DIRECTORY)
    try:
        use(f"/proc/self/fd/{descriptor}/{_SOCKET_NAME}")
    finally:
        os.close(descriptor)


# Handshake on a blocking socket: descriptors travel as ancillary data.


def _put(link: socket.socket, kind: int, payload: bytes = b"") -> None:
    link.sendall(_HEAD.pack(len(payload), kind) + payload)


def _ask(link: socket.socket, kind: int, payload: bytes) -> bytes:
    _put(link, kind, payload)
    return _expect(link, kind + 1)


def _expect(link: socket.socket, wanted: int) -> bytes:
    length, kind = _HEAD.unpack(_exactly(link, _HEAD.size))
    return _payload(link, length, kind, wanted)


def _payload(link: socket.socket, length: int, kind: int, wanted: int) -> bytes:
    if kind != wanted:
        raise ValueError("it speaks another version of this protocol")
    if length > _MOST_FRAME_BYTES:
        raise ValueError("it sends more than any server has to say")
    return _exactly(link, length)


def _exactly(link: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = link.recv(size - len(data))
        if not more:
            raise ConnectionResetError("it hung up")
        data += more
    return bytes(data)


def _send_state(link: socket.socket, handed: HandedOverState) -> None:
    names = json.dumps(list(handed.sockets)).encode()
    descriptors = [sock.fileno() for sock in handed.sockets.values()]
    socket.send_fds(link, [_HEAD.pack(len(names), _SOCKETS)], descriptors)
    link.sendall(names)
    _put(link, _STATE, json.dumps([handed.call_ids, handed.hosts]).encode())


def _receive_state(link: socket.socket) -> HandedOverState:
    _put(link, _TAKE)
    head, descriptors, _, _ = socket.recv_fds(link, _HEAD.size, _MOST_SOCKETS)
    sockets = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    try:
        length, kind = _HEAD.unpack(head + _exactly(link, _HEAD.size - len(head)))
        names: list[str] = json.loads(_payload(link, length, kind, _SOCKETS))
        call_ids, hosts = json.loads(_expect(link, _STATE))
        for sock in sockets:
            sock.set_inheritable(False)  # Received sockets are inheritable, and would outlive us in a child.
            sock.setblocking(False)
        return HandedOverState(dict(zip(names, sockets, strict=True)), call_ids, hosts)
    except BaseException:
        for sock in sockets:
            sock.close()
        raise
