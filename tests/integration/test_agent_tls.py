"""TLS to agents: whom it trusts, and what a server that misuses it comes to."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import pytest
from OpenSSL import SSL

from media import _engine
from media.aio.agent_connection import AgentConnection, tls_client
from media.aio.agent_dial import DialSettings
from media.aio.agent_settings import AgentStreamSettings
from media.aio.agent_stream import AgentStream
from media.streams import AgentClosed, AgentEvent, AgentHold, StreamConnectError, StreamSetup
from media.streams.model import BROKEN
from tests.support.agent_bot import Bot, FakeTap, no_leaks, raw_server, to_loopback
from tests.support.agent_paths import Carrier
from tests.support.raw_agent import PING, PONG, TEXT, RawAgent, frame
from tests.support.tls_server import CERTIFICATE, server_context

HOLD = b'{"event":"hold","hold":{"active":true}}'


pytestmark = pytest.mark.parametrize("carrier", ["plain"], indirect=True)


@pytest.fixture(autouse=True)
async def leaks(carrier: None) -> AsyncIterator[None]:
    async with no_leaks():
        yield


async def connect(url: str, on_event: Callable[[AgentEvent], None] = print, **dial: Any) -> AgentStream:
    settings = DialSettings(**({"offsets_s": (0.0, 0.01, 0.02), "ca_file": CERTIFICATE} | dial))
    return await AgentStream.connect(
        StreamSetup(url=url, stream_sid="s", call_sid="c", account_sid="a", from_="+1", to="+2"),
        resolve=to_loopback,
        on_event=on_event,
        settings=AgentStreamSettings(
            dial=settings, close_timeout_s=0.2, ping_interval_s=0.3, pong_timeout_s=0.3
        ),
        carrier=Carrier.stream,
    )


async def failure(url: str, **dial: Any) -> StreamConnectError:
    with pytest.raises(StreamConnectError) as caught:
        await connect(url, **dial)
    return caught.value


async def wait_closed(bot: Bot) -> None:
    await bot.until_closed()


async def test_the_certificate_is_checked_and_the_host_named(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str | None] = []
    protocols: list[str | None] = []
    context = server_context()
    context.set_alpn_protocols(["h2", "http/1.1"])

    def note(server: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        named.append(name)

    context.sni_callback = note
    monkeypatch.setattr(Carrier, "tls", context)
    bot = Bot(wait_closed)
    async with bot.running():
        stream = await connect(f"wss://bot.test:{bot.port}/ws")
        assert bot.request is not None and bot.request.transport is not None
        protocols.append(bot.request.transport.get_extra_info("ssl_object").selected_alpn_protocol())
        stream.send_dtmf("1", 100)
        await stream.stop()
        assert bot.request.headers["Host"] == f"bot.test:{bot.port}"
        assert [frame["event"] for frame in bot.received] == ["connected", "start", "dtmf", "stop"]
        await (await connect(f"wss://127.0.0.1:{bot.port}/ws")).stop()
        assert (named, protocols) == (["bot.test", None], ["http/1.1"])

        wrong_name = await failure(f"wss://other.test:{bot.port}/ws")
        untrusted = await failure(f"wss://bot.test:{bot.port}/ws", ca_file=None)
    assert (wrong_name.reason, wrong_name.attempts) == ("tls", 3)
    assert wrong_name.detail == ("certificate verify failed: the certificate is not valid for 'other.test'")
    assert (untrusted.reason, untrusted.attempts) == ("tls", 3)
    assert untrusted.detail == "certificate verify failed: self-signed certificate"


async def test_an_agent_that_fails_disturbs_no_other_connection_of_the_process() -> None:
    # Python's TLS and the engine's may be one library, which keeps its errors by threads.
    other = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="x.test")
    tls = tls_client("bot.test", CERTIFICATE)
    tls.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert tls.fault == "wrong version number"
    with pytest.raises(ssl.SSLWantReadError):
        other.do_handshake()


async def test_tls_that_an_engine_has_is_not_taken_for_none() -> None:
    assert Carrier.stream is not None
    near, tls = Carrier.stream, tls_client("bot.test", CERTIFICATE)
    ours, theirs = socket.socketpair()

    def adopt(sock: socket.socket) -> _engine.AgentSocket:
        return near.engine.open_agent_socket(
            near,
            AgentConnection(sock, tls),
            b"",
            binary=False,
            audio_format=("l16", 8000),
            max_frames=10,
            max_message_bytes=1000,
            on_message=lambda *_: None,
        )

    adopt(ours).release()
    descriptor = theirs.fileno()
    with pytest.raises(RuntimeError, match="an engine has the connection"):
        adopt(theirs)
    os.close(descriptor)


async def test_a_server_without_tls() -> None:
    bot = Bot(wait_closed)
    async with bot.running():
        error = await failure(f"wss://bot.test:{bot.port}/ws", budget_s=2.0)
    assert error.reason in ("tls", "connect")


@pytest.mark.parametrize("part", [b"", b"\x16\x03\x03\x40"])
async def test_a_handshake_that_stalls_uses_up_the_budget(part: bytes) -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(part)
        await reader.read(-1)

    async with raw_server(stall) as port:
        error = await failure(f"wss://bot.test:{port}/", budget_s=0.2)
    assert (error.reason, error.attempts) == ("timeout", 1)


async def test_a_handshake_that_never_ends_does_not_hold_up_the_loop() -> None:
    # Requests for a handshake, which are ignored in one.
    requests = b"\x16\x03\x03\x40\x00" + bytes(0x4000)

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(64):
            writer.write(requests)
        await reader.read(-1)

    async with raw_server(flood) as port:
        error = await failure(f"wss://bot.test:{port}/")
    assert (error.reason, error.attempts) == ("protocol", 1)


async def test_a_handshake_that_is_cut_off() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)

    async with raw_server(cut) as port:
        error = await failure(f"wss://bot.test:{port}/")
    assert (error.reason, error.attempts) == ("connect", 3)


class Server:
    """TLS whose records are the test's to hold back, to spoil or to multiply, over plain streams."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int = SSL.TLS1_3_VERSION
    ) -> None:
        context = SSL.Context(SSL.TLS_SERVER_METHOD)
        context.use_certificate_file(CERTIFICATE)
        context.use_privatekey_file(CERTIFICATE.replace("cert.pem", "key.pem"))
        context.set_max_proto_version(most)
        self.tls = SSL.Connection(context, None)
        self.tls.set_accept_state()
        self._reader = reader
        self._writer = writer

    def write(self, data: bytes) -> None:
        self.tls.sendall(data)
        self.flush()

    def send(self, data: bytes) -> None:
        """Send bytes as they are, below TLS."""
        self._writer.write(data)

    def records(self) -> bytes:
        """Bytes that are to be sent."""
        with suppress(SSL.WantReadError):
            return self.tls.bio_read(1 << 20)
        return b""

    def flush(self) -> None:
        self.send(self.records())

    async def readuntil(self, end: bytes) -> bytes:
        data = b""
        while not data.endswith(end):
            data += await self.readexactly(1)
        return data

    async def readexactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                data += self.tls.recv(size - len(data))
            except SSL.WantReadError:
                self.flush()
                received = await self._reader.read(4096)
                if not received:
                    raise asyncio.IncompleteReadError(data, size) from None
                self.tls.bio_write(received)
            except SSL.ZeroReturnError:
                raise asyncio.IncompleteReadError(data, size) from None
        return data


class Scene:
    """A stream over TLS whose agent does what the test says."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[AgentEvent] = asyncio.Queue()
        self.agent: RawAgent
        self.server: Server
        self.stream: AgentStream

    async def next(self) -> AgentEvent:
        async with asyncio.timeout(40):
            return await self.events.get()


@asynccontextmanager
async def scene(most: int = SSL.TLS1_3_VERSION) -> AsyncIterator[Scene]:
    made = Scene()
    opened, over = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.server = server = Server(reader, writer, most)
        # It has the methods of both that an agent uses.
        made.agent = RawAgent(cast(asyncio.StreamReader, server), cast(asyncio.StreamWriter, server))
        await made.agent.accept()
        opened.set()
        await over.wait()

    async with raw_server(serve) as port:
        made.stream = await connect(f"wss://bot.test:{port}/", made.events.put_nowait)
        made.stream.start(FakeTap())
        async with asyncio.timeout(40):
            await opened.wait()
        try:
            yield made
            await made.stream.stop()
        finally:
            over.set()


async def test_a_frame_in_many_records_and_many_frames_in_one() -> None:
    async with scene() as it:
        for byte in frame(TEXT, HOLD):
            it.server.write(bytes([byte]))
        it.server.write(frame(TEXT, HOLD) * 2)
        for _ in range(3):
            assert await it.next() == AgentHold(True)
        it.server.write(frame(PING, b"now"))
        async with asyncio.timeout(40):
            assert await it.agent.until(PONG) == b"now"


async def test_a_record_that_never_ends_is_no_sign_of_life() -> None:
    async with scene() as it:
        it.server.tls.sendall(frame(TEXT, HOLD))
        it.server.send(it.server.records()[:-3])
        closed = await it.next()
        assert isinstance(closed, AgentClosed) and (closed.code, closed.abnormal) == (4408, True)


@pytest.mark.parametrize("garbage", [b"\x17\x03\x03\x00\x20" + b"x" * 32, b"GET / HTTP/1.1\r\n\r\n"])
async def test_garbage_below_tls_ends_the_stream(garbage: bytes) -> None:
    async with scene() as it:
        it.server.write(frame(TEXT, HOLD))
        it.server.send(garbage)
        assert await it.next() == AgentHold(True)
        assert await it.next() == AgentClosed(BROKEN, abnormal=True, reason="connection lost")


async def test_the_end_of_tls_is_the_end_of_the_connection() -> None:
    async with scene() as it:
        it.server.write(frame(TEXT, HOLD))
        it.server.tls.shutdown()
        it.server.flush()
        assert await it.next() == AgentHold(True)
        assert await it.next() == AgentClosed(BROKEN, abnormal=True, reason="connection lost")


async def test_a_renegotiation_is_refused_and_the_stream_goes_on() -> None:
    async with scene(SSL.TLS1_2_VERSION) as it:
        assert it.server.tls.get_protocol_version_name() == "TLSv1.2"
        it.server.tls.renegotiate()
        with suppress(SSL.Error):
            it.server.tls.do_handshake()
        it.server.flush()
        it.server.write(frame(TEXT, HOLD))
        assert await it.next() == AgentHold(True)
        # It has no way back from the refusal.
        with pytest.raises(SSL.Error):
            await it.agent.until(PONG)
