"""Opening the socket to an agent: what may go wrong, and what is tried again."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from aiohttp import web

from media.aio.agent_dial import DialSettings, SocketAddress
from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_stream import AgentStream
from media.streams import StreamConnectError, StreamSetup
from tests.support.agent_bot import Bot, no_leaks, raw_server, to_loopback
from tests.support.agent_paths import Carrier, agent_url, scheme
from tests.support.model_setups import make_dialect
from tests.support.ports import free_port


@pytest.fixture(autouse=True)
async def leaks(carrier: None) -> AsyncIterator[None]:
    """Neither a task nor a socket is left behind."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        async with no_leaks():
            yield
        gc.collect()


async def wait_closed(bot: Bot) -> None:
    await bot.until_closed()


async def connect(url: str, resolve: Any = to_loopback, **dial: Any) -> AgentStream:
    settings = AgentStreamSettings(dial=DialSettings(**({"offsets_s": (0.0, 0.01, 0.02)} | dial)))
    setup = StreamSetup(url=url, stream_sid="s", call_sid="c", account_sid="a", from_="+1", to="+2")
    return await AgentStream.connect(
        setup, resolve=resolve, on_event=print, settings=settings, carrier=Carrier.stream
    )


async def failure(url: str, resolve: Any = to_loopback, **dial: Any) -> StreamConnectError:
    with pytest.raises(StreamConnectError) as caught:
        await connect(url, resolve, **dial)
    return caught.value


@pytest.mark.parametrize(
    ("status", "attempts"), [(301, 1), (401, 1), (403, 1), (404, 1), (429, 1), (200, 1), (500, 3), (503, 3)]
)
async def test_an_answer_that_is_no_upgrade(status: int, attempts: int) -> None:
    requests = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        await reader.readuntil(b"\r\n\r\n")
        requests += 1
        writer.write(
            b"HTTP/1.1 %d No\r\nLocation: ws://127.0.0.1:1/\r\nContent-Length: 4\r\n\r\nbody" % status
        )
        await writer.drain()

    async with raw_server(answer) as port:
        error = await failure(agent_url(port))
    assert (error.reason, error.http_status, error.attempts) == ("http_status", status, attempts)
    assert requests == attempts


async def test_a_vendor_at_its_limit_is_tried_again() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with raw_server(answer) as port:
        setup = make_dialect("openai", url=agent_url(port))._setup
        settings = AgentStreamSettings(dial=DialSettings(offsets_s=(0.0, 0.01, 0.02)))
        with pytest.raises(StreamConnectError) as caught:
            await AgentStream.connect(
                setup, resolve=to_loopback, on_event=print, settings=settings, carrier=Carrier.stream
            )
    assert (caught.value.http_status, caught.value.attempts) == (429, 3)


async def test_a_real_server_that_refuses() -> None:
    app = web.Application()
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=Carrier.tls)
    await site.start()
    try:
        error = await failure(agent_url(runner.addresses[0][1], "/nothing"))
    finally:
        await runner.cleanup()
    assert (error.reason, error.http_status, error.attempts) == ("http_status", 404, 1)


async def test_a_second_attempt_may_succeed() -> None:
    bot = Bot(wait_closed)
    async with bot.running():
        calls = 0

        async def flaky(host: str, port: int, tls: bool) -> Sequence[SocketAddress]:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
            return [("127.0.0.1", bot.port)]

        stream = await connect(f"{scheme()}://bot.test/ws", flaky)
        await stream.stop()
    assert calls == 2
    assert bot.request is not None
    assert bot.request.headers["Host"] == "bot.test"


async def test_nobody_listens() -> None:
    error = await failure(agent_url(free_port()))
    assert (error.reason, error.attempts) == ("connect", 3)


async def test_the_next_address_is_tried() -> None:
    bot = Bot(wait_closed)
    async with bot.running():

        async def two(host: str, port: int, tls: bool) -> Sequence[SocketAddress]:
            return [("127.0.0.1", free_port()), ("::1", free_port(), 0, 0), ("127.0.0.1", bot.port)]

        stream = await connect(f"{scheme()}://bot.test/", two)
        await stream.stop()
    assert bot.connections == 1


async def test_only_the_addresses_that_were_given_are_dialled() -> None:
    async def elsewhere(host: str, port: int, tls: bool) -> Sequence[SocketAddress]:
        assert (host, port, tls) == ("127.0.0.1", bot.port, Carrier.tls is not None)
        return [("127.0.0.1", free_port())]

    bot = Bot(wait_closed)
    async with bot.running():
        error = await failure(bot.url, elsewhere)
    assert error.reason == "connect"
    assert bot.connections == 0


@pytest.mark.parametrize(
    ("raised", "reason", "attempts"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "dns", 3),
        (StreamConnectError("forbidden"), "forbidden", 1),
    ],
)
async def test_a_name_that_has_no_address_or_must_not_be_dialled(
    raised: Exception, reason: str, attempts: int
) -> None:
    async def resolve(host: str, port: int, tls: bool) -> Sequence[SocketAddress]:
        raise raised

    error = await failure(f"{scheme()}://bot.test/", resolve)
    assert (error.reason, error.attempts) == (reason, attempts)


async def test_no_address_at_all() -> None:
    async def nothing(host: str, port: int, tls: bool) -> Sequence[SocketAddress]:
        return []

    assert (await failure(f"{scheme()}://bot.test/", nothing)).reason == "dns"


@pytest.mark.parametrize(
    "part", [b"", b"HTTP/1.1 101 Switching", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"]
)
async def test_an_agent_that_hangs_up_during_the_handshake(part: bytes) -> None:
    async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(part)
        await writer.drain()

    async with raw_server(drop) as port:
        error = await failure(agent_url(port))
    assert (error.reason, error.attempts) == ("connect", 3)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"\0\xff\xfe\r\n\r\n",
        b"HTTP/1.1 abc Oh\r\n\r\n",
        b"HTTP/1.1 101 Fine\r\n\r\n",
        b"HTTP/1.1 101 Fine\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
        b"HTTP/1.1 101 Fine\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 101 Fine\r\n" + b"X-Fill: " + b"x" * 40_000,
        b"HTTP/1.1 101 Fine\r\nContent-Length: many\r\n\r\n",
    ],
)
async def test_an_answer_that_is_nonsense(answer: bytes) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        await reader.read()

    async with raw_server(babble) as port:
        error = await failure(agent_url(port))
    assert (error.reason, error.attempts) == ("protocol", 1)


async def test_an_agent_that_says_nothing_uses_up_the_budget() -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with raw_server(silence) as port:
        error = await failure(agent_url(port), budget_s=0.2)
    assert (error.reason, error.attempts) == ("timeout", 1)


async def test_a_resolver_that_says_nothing_uses_up_the_budget() -> None:
    async def never(host: str, port: int, tls: bool) -> Sequence[SocketAddress]:
        await asyncio.Event().wait()
        return []

    error = await failure(f"{scheme()}://bot.test/", never, budget_s=0.1)
    assert (error.reason, error.attempts) == ("timeout", 1)


async def test_giving_up_leaves_nothing_open() -> None:
    connected, ended = asyncio.Event(), asyncio.Event()

    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        connected.set()
        await reader.read()
        ended.set()

    async with raw_server(silence) as port:
        dialling = asyncio.create_task(connect(agent_url(port)))
        async with asyncio.timeout(40):
            await connected.wait()
        dialling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dialling
        async with asyncio.timeout(40):
            await ended.wait()
