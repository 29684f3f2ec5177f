"""The upgrade of a plain connection to WebSocket, which leaves the socket to the caller (RFC 6455 4.1)."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import io
import re
import secrets
import socket
from base64 import b64encode

from picows.url import parse_url

from media.streams import StreamConnectError

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MAX_ANSWER_BYTES = 16 * 1024
_READ_BYTES = 4096
_STATUS = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2})(?: [^\r\n]*)?\r\n")


async def upgrade(sock: socket.socket, url: str, headers: list[tuple[str, str]]) -> bytes:
    """
    Upgrade a connected, non-blocking socket; returns the bytes that were read behind the answer.

    Raises:
        StreamConnectError: The agent hung up, refused, or answered something else.
        OSError: The connection failed.
    """
    key = b64encode(secrets.token_bytes(16))
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, _request(url, key, headers))
    answer, read = await _read_answer(loop, sock)
    _check(answer, key)
    return read


def _request(url: str, key: bytes, headers: list[tuple[str, str]]) -> bytes:
    target = parse_url(url)
    host = f"[{target.host}]" if ":" in target.host else target.host
    fields = [
        ("Host", host if target.port == http.client.HTTP_PORT else f"{host}:{target.port}"),
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key.decode()),
        *headers,
    ]
    lines = [f"GET {target.resource_name} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join([*lines, "", ""]).encode()


async def _read_answer(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> tuple[bytes, bytes]:
    """Read the head of the answer; returns it, and the bytes behind it."""
    data = b""
    while True:
        head, end, rest = data.partition(b"\r\n\r\n")
        if end:
            return head + end, rest
        if len(data) > _MAX_ANSWER_BYTES:
            raise _nonsense()
        more = await loop.sock_recv(sock, _READ_BYTES)
        if not more:
            raise StreamConnectError("connect", detail="the agent hung up during the handshake")
        data += more


def _check(answer: bytes, key: bytes) -> None:
    line = _STATUS.match(answer)
    if line is None:
        raise _nonsense()
    status = int(line[1])
    if status != http.client.SWITCHING_PROTOCOLS:
        raise StreamConnectError("http_status", status)
    try:
        fields = http.client.parse_headers(io.BytesIO(answer[line.end() :]))
    except http.client.HTTPException:
        raise _nonsense() from None
    options = [option.strip().lower() for option in fields.get("Connection", "").split(",")]
    accept = b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest()).decode()
    if (
        fields.get("Upgrade", "").lower() != "websocket"
        or "upgrade" not in options
        or fields.get("Sec-WebSocket-Accept") != accept
    ):
        raise _nonsense()


def _nonsense() -> StreamConnectError:
    return StreamConnectError("protocol", detail="the answer is not an upgrade to WebSocket")
