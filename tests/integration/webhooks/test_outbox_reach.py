"""Webhook connections that leave this host: a table of forbidden ones, verified TLS, and no proxy."""

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from callcontrol.egress.aio.resolver import DestinationGuard, Lookup
from callcontrol.egress.url_policy import literal_address
from callcontrol.models import WebhookEvent
from callcontrol.webhooks.aio.client import Answer, WebhookClient
from tests.support.certificates import Authority
from tests.support.waiting import PATIENCE_S
from tests.support.webhook_stage import SECRET, SLOW, Receiver, Stage
from tests.unit.callcontrol.egress.test_url_policy import HOSTS, MALFORMED, NEVER, PUBLIC, USERINFO

NOW = datetime.datetime.now(datetime.UTC)
FORBIDDEN = [f"https://{host}/" for host, kind in HOSTS if kind != PUBLIC]
FORBIDDEN += [f"https://{host}:8443/x?y" for host, kind in HOSTS if kind != PUBLIC]
FORBIDDEN += [url for url, kind in USERINFO if kind != PUBLIC] + MALFORMED


class Sockets:
    """Counts the sockets that are made for connections."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        real = socket.socket

        def make(*arguments: Any, **keywords: Any) -> socket.socket:
            self.made += 1
            return real(*arguments, **keywords)

        monkeypatch.setattr(socket, "socket", make)


async def send(url: str, guard: Any, timeout_s: float = PATIENCE_S) -> Answer:
    client = WebhookClient(guard, timeout_s)
    try:
        event = WebhookEvent("event-1", "acc-1", "call.ringing", url, b"{}", NOW)
        return await client.send(event, [SECRET])
    finally:
        await client.close()


async def test_nothing_is_connected_to_under_any_forbidden_url(monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = Sockets(monkeypatch)
    assert len(FORBIDDEN) > 300
    for url in FORBIDDEN:
        answer = await send(url, DestinationGuard(False))
        assert (answer.status, bool(answer.problem)) == (0, True), url
    assert sockets.made == 0


async def test_some_are_never_connected_to_even_in_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = Sockets(monkeypatch)
    for host in [host for host, kind in HOSTS if kind == NEVER]:
        answer = await send(f"http://{host}/", DestinationGuard(True))
        assert (answer.status, bool(answer.problem)) == (0, True), host
    assert sockets.made == 0


def always(addresses: list[str]) -> Lookup:
    """A resolver that knows these addresses of every name."""
    return lambda _, port: [(address, port) for address in addresses]


class Careless:
    """Judges no URL and no name, only the address of the socket that is about to be opened."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._strict = DestinationGuard(False)

    def check_url(self, url: str, *, schemes: Any) -> None:
        if url != self._url:
            self._strict.check_url(url, schemes=schemes)

    async def resolve(self, host: str, port: int, tls: bool) -> list[Any]:
        found = literal_address(host)
        if found is None:
            raise OSError("no such host")
        return [(str(found), port) if found.version == 4 else (str(found), port, 0, 0)]


async def test_the_address_of_every_socket_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = Sockets(monkeypatch)
    for host in [host for host, kind in HOSTS if kind != PUBLIC and literal_address(host)]:
        # A path, so that it is not the URL that the socket's address is judged as.
        url = f"https://{host}/hook"
        answer = await send(url, Careless(url))
        assert (answer.status, bool(answer.problem)) == (0, True), host
    assert sockets.made == 0


@pytest.mark.parametrize("first", ["93.184.215.14", "2606:2800:21f::1"])
@pytest.mark.parametrize("second", ["127.0.0.1", "10.0.0.1", "::1", "64:ff9b::7f00:1", "2002:7f00:1::1"])
async def test_a_name_with_addresses_of_both_kinds_is_refused_whole(
    monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    sockets = Sockets(monkeypatch)
    for addresses in ([first, second], [second, first]):
        answer = await send("https://hooks.example.com/", DestinationGuard(False, lookup=always(addresses)))
        assert answer.status == 0
        assert "hooks.example.com" in (answer.problem or "")
    assert sockets.made == 0


async def test_proxies_of_the_environment_are_not_used(
    stage: Stage, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Receiver()
    await proxy.start()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url())
        monkeypatch.setenv(name.lower(), proxy.url())
    await stage.start(SLOW)
    await stage.ended(await stage.post(receiver.url("/hook")))
    assert len(receiver.requests) == 1
    assert proxy.connections == 0
    await proxy.close()


@asynccontextmanager
async def tls_server(certificate: Path, key: Path, names: list[str | None]) -> AsyncIterator[int]:
    """A receiver over TLS that notes under which name it was asked for."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    context.sni_callback = lambda _, name, __: names.append(name)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    ("host", "until", "known", "status"),
    [
        ("hooks.example.com", datetime.datetime(2120, 1, 1), True, 204),
        ("hooks.example.com", datetime.datetime(2120, 1, 1), False, 0),
        ("other.example.com", datetime.datetime(2120, 1, 1), True, 0),
        ("hooks.example.com", datetime.datetime(2021, 1, 1), True, 0),
    ],
    ids=["right", "unknown authority", "other name", "expired"],
)
async def test_certificates_are_verified(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    until: datetime.datetime,
    known: bool,
    status: int,
) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue(host, hosts=[host], until=until)
    # What the client trusts by default, and the authority of this test beside it.
    trusted = ssl.create_default_context()
    if known:
        trusted.load_verify_locations(authority.file)
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", trusted)
    names: list[str | None] = []
    guard = DestinationGuard(True, lookup=lambda _, port: [("127.0.0.1", port)])
    async with tls_server(issued.certificate, issued.key, names) as port:
        answer = await send(f"https://hooks.example.com:{port}/hook", guard)
    assert answer.status == status
    assert names == ["hooks.example.com"]
    assert status == 204 or "certificate" in (answer.problem or "").lower()
