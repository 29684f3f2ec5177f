"""
Opens the socket to a voice agent.

A hook of the caller resolves the name and checks the addresses. The socket is connected to one of the
addresses that the hook returned, so a later change of the name cannot bypass the check.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from media.aio.agent_connection import AgentConnection, tls_client
from media.aio.agent_upgrade import upgrade
from media.streams import StreamConnectError, StreamSetup, upgrade_headers

T = TypeVar("T")

SocketAddress = tuple[str, int] | tuple[str, int, int, int]
Resolve = Callable[[str, int, bool], Awaitable[Sequence[SocketAddress]]]

# An address that does not answer must not use up the time of those after it.
_ADDRESS_TIMEOUT_S = 1.5

# Enough for 200 ms of audio on a slow path; more would become stale in the kernel when an agent stalls.
_SEND_BUFFER_BYTES = 32 * 1024

# Bounds the data of one read, which is handled all at once; over a second of audio in any dialect.
_RECEIVE_BUFFER_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True)
class DialSettings:
    """
    Time limits and attempts of a connection.

    Attributes:
        budget_s: Time for all attempts together.
        offsets_s: Earliest start of each attempt, from the first.
        max_message_bytes: Longest frame that is accepted later.
        ca_file: PEM file of the authorities that are trusted for wss; None for those of the system.
    """

    budget_s: float = 5.0
    offsets_s: tuple[float, ...] = (0.0, 0.25, 1.0)
    max_message_bytes: int = 1 << 20
    ca_file: str | None = None


async def dial_websocket(
    setup: StreamSetup, resolve: Resolve, settings: DialSettings
) -> tuple[AgentConnection, bytes]:
    """
    Open the WebSocket of a stream, with retries where they may help.

    Failures of name resolution, connections and TLS, and 5xx answers are retried, of a vendor also 429; an
    answer of any other status is final. Returns the connection, and the bytes behind the handshake.

    Raises:
        StreamConnectError: No attempt succeeded within the budget.
    """
    return await _Dialler(setup, lambda sock: _upgraded(sock, setup, settings), resolve, settings).run()


async def dial_tcp(setup: StreamSetup, resolve: Resolve, settings: DialSettings) -> socket.socket:
    """
    Open the TCP connection of a stream without a handshake, likewise.

    Raises:
        StreamConnectError: No attempt succeeded within the budget.
    """

    async def connected(sock: socket.socket) -> socket.socket:
        return sock

    return await _Dialler(setup, connected, resolve, settings).run()


class _Dialler(Generic[T]):
    def __init__(
        self,
        setup: StreamSetup,
        upgrade: Callable[[socket.socket], Awaitable[T]],
        resolve: Resolve,
        settings: DialSettings,
    ) -> None:
        parts = urlsplit(setup.url)
        self._upgrade = upgrade
        self._resolve = resolve
        self._settings = settings
        self._tls = parts.scheme.lower() == "wss"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._retried = (HTTPStatus.TOO_MANY_REQUESTS,) if setup.model is not None else ()
        self._addresses: Sequence[SocketAddress] = ()

    async def run(self) -> T:
        loop = asyncio.get_running_loop()
        started = loop.time()
        deadline = started + self._settings.budget_s
        failure = StreamConnectError("timeout")
        attempts = 0
        for offset_s in self._settings.offsets_s:
            await asyncio.sleep(min(started + offset_s, deadline) - loop.time())
            attempts += 1
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._attempt(deadline)
            except StreamConnectError as error:
                failure = error
            except TimeoutError:
                failure = StreamConnectError("timeout", detail="no answer within the budget")
            failure.attempts = attempts
            if not self._may_try_again(failure) or loop.time() >= deadline:
                break
        raise failure

    def _may_try_again(self, failure: StreamConnectError) -> bool:
        if (status := failure.http_status) is not None:
            return status >= 500 or status in self._retried
        return failure.reason in ("dns", "connect", "tls", "timeout")

    async def _attempt(self, deadline: float) -> T:
        if not self._addresses:
            self._addresses = await self._resolved()
        sock = await self._connected(deadline)
        try:
            return await self._upgrade(sock)
        except BaseException:
            sock.close()
            raise

    async def _resolved(self) -> Sequence[SocketAddress]:
        try:
            addresses = await self._resolve(self._host, self._port, self._tls)
        except TimeoutError:
            raise
        except OSError as error:
            raise StreamConnectError("dns", detail=_words(error)) from None
        if not addresses:
            raise StreamConnectError("dns", detail="the name has no address")
        return addresses

    async def _connected(self, deadline: float) -> socket.socket:
        """Connect to the first address that accepts the connection."""
        loop = asyncio.get_running_loop()
        failure = StreamConnectError("connect")
        for position, address in enumerate(self._addresses):
            last = position == len(self._addresses) - 1
            limit = deadline if last else min(deadline, loop.time() + _ADDRESS_TIMEOUT_S)
            try:
                async with asyncio.timeout_at(limit):
                    return await _connect(address)
            except TimeoutError:
                failure = StreamConnectError("timeout", detail="the address does not answer")
            except OSError as error:
                failure = StreamConnectError("connect", detail=_words(error))
        raise failure


async def _upgraded(
    sock: socket.socket, setup: StreamSetup, settings: DialSettings
) -> tuple[AgentConnection, bytes]:
    parts = urlsplit(setup.url)
    try:
        secure = parts.scheme.lower() == "wss"
        tls = tls_client(parts.hostname or "", settings.ca_file) if secure else None
        connection = AgentConnection(sock, tls)
        await connection.handshake()
        return connection, await upgrade(connection, setup.url, upgrade_headers(setup, int(time.time())))
    except TimeoutError:
        raise
    except OSError as error:
        raise StreamConnectError("connect", detail=_words(error)) from None


async def _connect(address: SocketAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


def _words(error: OSError) -> str:
    """Return the text of a system error for a log, without addresses."""
    return error.strerror or type(error).__name__
