"""The upgrade of a connection to WebSocket, which leaves the connection to the caller (RFC 6455 4.1)."""

from __future__ import annotations

import hashlib
import http.client
import io
import re
import secrets
from base64 import b64encode
from urllib.parse import quote, urlsplit

from media.aio.agent_connection import AgentConnection
from media.streams import StreamConnectError

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MAX_ANSWER_BYTES = 16 * 1024
# Delimiters of RFC 3987, which stay as they are where a path or a query is not ASCII.
_DELIMITERS = ":/?#[]@!$&'()*+,;="
_STATUS = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2})(?: [^\r\n]*)?\r\n")


async def upgrade(connection: AgentConnection, url: str, headers: list[tuple[str, str]]) -> bytes:
    """
    Upgrade a connection; returns the bytes that were read behind the answer.

    Raises:
        StreamConnectError: The agent hung up, refused, or answered something else, or TLS failed.
        OSError: The connection failed.
    """
    key = b64encode(secrets.token_bytes(16))
    await connection.send(_request(url, key, headers))
    answer, read = await _read_answer(connection)
    _check(answer, key)
    return read + connection.rest()


def _request(url: str, key: bytes, headers: list[tuple[str, str]]) -> bytes:
    target = urlsplit(url)
    name = target.hostname or ""
    host = f"[{name}]" if ":" in name else name
    default = http.client.HTTPS_PORT if target.scheme == "wss" else http.client.HTTP_PORT
    fields = [
        ("Host", host if target.port in (None, default) else f"{host}:{target.port}"),
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key.decode()),
        *headers,
    ]
    resource = f"{target.path or '/'}{'?' if target.query else ''}{target.query}"
    if not resource.isascii():
        resource = quote(resource, safe=_DELIMITERS)
    lines = [f"GET {resource} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join([*lines, "", ""]).encode()


async def _read_answer(connection: AgentConnection) -> tuple[bytes, bytes]:
    """Read the head of the answer; returns it, and the bytes behind it."""
    data = b""
    while True:
        head, end, rest = data.partition(b"\r\n\r\n")
        if end:
            return head + end, rest
        if len(data) > _MAX_ANSWER_BYTES:
            raise _nonsense()
        data += await connection.receive()


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
