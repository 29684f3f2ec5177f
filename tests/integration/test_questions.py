"""Asking servers whose answers are no HTTP: what is told of it holds nothing of the address."""

from __future__ import annotations

import asyncio

import pytest

from callcontrol.egress.aio.http_client import CustomerHttpClient, NotAnswered
from callcontrol.models import WebhookEvent
from tests.support.domain import NOW, OpenDestinations


@pytest.mark.parametrize(
    "answer",
    [
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"",
    ],
)
async def test_a_broken_answer_is_told_in_one_line_without_the_address(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    client = CustomerHttpClient(OpenDestinations(), timeout_s=5, max_answer_bytes=1000)
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        event = WebhookEvent(
            event_id="event-1",
            account_sid="account-1",
            event="call.incoming",
            url=f"http://user:password@127.0.0.1:{port}/calls?token=hidden",
            body=b"{}",
            created_at=NOW,
        )
        with pytest.raises(NotAnswered) as refusal:
            await client.ask(event, ("secret",))
        await client.close()
    message = refusal.value.message
    assert refusal.value.reason in ("protocol", "connect") and message
    assert "\n" not in message and "hidden" not in message and "password" not in message
