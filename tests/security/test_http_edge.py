"""The edge of HTTP on real connections: what is no HTTP, what comes slowly or never, paths, headers."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from api.http.connections import ConnectionLimits, GuardedSite
from tests.support.server_process import Account, ServerProcess, wait_until
from tests.support.waiting import PATIENCE_S, look_again, until

_SMUGGLED = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
_POST = b"POST /v1/calls HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

UNREADABLE = {
    "two ways to end": _POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": _POST + b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n",
    "a length with a sign": _POST + b"Content-Length: +4\r\n\r\n{}{}",
    "a length in another base": _POST + b"Content-Length: 0x4\r\n\r\n{}{}",
    "a negative length": _POST + b"Content-Length: -1\r\n\r\n",
    "an unknown coding": _POST + b"Transfer-Encoding: xchunked\r\n\r\n",
    "two codings": _POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "space before the colon": _POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded line": _POST + b"X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    "a zero byte": _POST + b"X-A: b\x00c\r\n\r\n",
    "bare line feeds": b"GET /health HTTP/1.1\nHost: x\n\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "a long line": b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "a long field": b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
    "more fields than anybody sends": b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: a\r\n" * 500 + b"\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 200 + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(
        tmp_path_factory.mktemp("edge"),
        environment={"TRUNKLINE_HOT_RESTART": "1"},
    )
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def account(server: ServerProcess) -> Account:
    return server.add_account()


def ask(server: ServerProcess, data: bytes, *, to_the_end: bool = False) -> bytes:
    """Send as it stands; what came back until the connection ended, or the first answer."""
    with socket.create_connection(("127.0.0.1", server.http_port), PATIENCE_S) as connection:
        answer = b""
        try:
            connection.sendall(data)
            while to_the_end or b"\r\n\r\n" not in answer:
                more = connection.recv(65536)
                if not more:
                    break
                answer += more
        except ConnectionResetError:
            # It was refused before it had been read to its end.
            pass
        return answer


def test_bodies_that_cannot_be_read_are_a_line_each_in_the_log(server: ServerProcess) -> None:
    unreadable = {
        "gzip": b"Content-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip",
        "deflate": b"Content-Encoding: deflate\r\nContent-Length: 3\r\n\r\n\xff\xff\xff",
        "br": b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
        "chunks": b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n",
    }
    for what, rest in unreadable.items():
        answer = ask(server, _POST + b"X-Request-Id: unreadable-" + what.encode() + b"\r\n" + rest)
        assert answer.split()[1] in (b"400", b"401"), what
    # Its line comes after those of all before it.
    ask(server, _POST + b"X-Request-Id: readable\r\nContent-Length: 2\r\n\r\n{}")
    assert wait_until(lambda: "request_id=readable" in server.log(), PATIENCE_S)
    log = server.log()
    assert "Traceback" not in log and "aiohttp.server: Unhandled" not in log
    for what in ("gzip", "deflate", "br"):
        assert log.count(f"request_id=unreadable-{what}") == 1


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_could_be_read_in_two_ways_is_refused_and_ends_the_connection(
    server: ServerProcess, what: str
) -> None:
    answer = ask(server, UNREADABLE[what] + _SMUGGLED, to_the_end=True)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert re.match(rb"HTTP/1\.[01] 400 ", head), answer[:300]
    assert answer.count(b"HTTP/1.") == 1 and b'"openapi"' not in answer, (
        "what follows was taken for a request"
    )
    assert body.startswith(b'{"error":{"code":"BAD_REQUEST"') and b"aaaa" not in body
    assert b"Server: Trunkline" in head and b"Python" not in answer and b"aiohttp" not in answer


@pytest.mark.parametrize(
    "path",
    [
        "/recordings/../../../../etc/passwd",
        "/recordings/..%2f..%2fsecret.key",
        "/recordings/..%2f..%2fsecret.key.wav",
        "/recordings/%2e%2e/secret.key.wav",
        "/recordings//etc/passwd.wav",
        "/recordings/..\\..\\secret.key.wav",
        "/recordings/secret.key%00.wav",
        "/recordings/%ff%fe.wav",
    ],
)
def test_no_path_leads_out_of_the_recordings(server: ServerProcess, account: Account, path: str) -> None:
    assert (server.data_dir / "secret.key").exists()
    fields = f"Host: x\r\nAuthorization: Bearer {account.api_key}\r\nConnection: close\r\n"
    answer = ask(server, f"GET {path} HTTP/1.1\r\n{fields}\r\n".encode(), to_the_end=True)
    assert re.match(rb"HTTP/1\.[01] 40[04] ", answer), answer[:200]
    assert (server.data_dir / "secret.key").read_bytes().strip() not in answer and b"root:" not in answer


@pytest.mark.parametrize("name", ["trunkline.db", "secret.key", "recordings", "takeover.sock"])
def test_other_users_of_the_machine_read_nothing(server: ServerProcess, name: str) -> None:
    assert (server.data_dir / name).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND"])
def test_methods_that_nobody_needs_say_nothing_of_the_request(server: ServerProcess, method: str) -> None:
    answer = ask(server, f"{method} /v1/calls HTTP/1.1\r\nHost: x\r\nX-Mine: 4711\r\n\r\n".encode())
    assert re.match(rb"HTTP/1\.1 40[45] ", answer) and b"4711" not in answer


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/v1/calls", "/nowhere", "/metrics"])
def test_every_answer_says_how_it_may_be_used(server: ServerProcess, path: str) -> None:
    answer = ask(server, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    head = answer.partition(b"\r\n\r\n")[0].decode()
    assert "X-Content-Type-Options: nosniff" in head and "Cache-Control: no-store" in head
    assert "Server: Trunkline" in head and "Access-Control-Allow" not in head and "Set-Cookie" not in head


def test_the_page_runs_its_own_script_alone_and_in_no_frame(server: ServerProcess) -> None:
    answer = ask(server, b"GET /docs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", to_the_end=True)
    head, _, page = answer.partition(b"\r\n\r\n")
    policy = re.search(rb"Content-Security-Policy: ([^\r]+)", head)
    assert policy is not None
    rules = dict(rule.split(b" ", 1) for rule in policy[1].split(b"; "))
    # Styles cannot call other hosts, because images, fonts and requests cannot.
    assert rules.pop(b"style-src") == b"'unsafe-inline'"
    assert rules.pop(b"script-src") == rules.pop(b"connect-src") == b"'self'"
    assert rules.pop(b"img-src") == b"'self' data:"
    assert rules == dict.fromkeys(
        (b"default-src", b"frame-ancestors", b"base-uri", b"form-action"), b"'none'"
    )
    assert not re.search(rb"\son[a-z]+=", page) and b"javascript:" not in page
    assert not re.search(rb"<script(?! src=)", page) and b"<style" not in page and b"//" not in page


@asynccontextmanager
async def small_site(limits: ConnectionLimits) -> AsyncIterator[int]:
    """A site with an answer that nobody takes at once; its port."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=bytes(64 << 20) if request.path == "/large" else b"ok")

    app = web.Application()
    app.router.add_get("/{path}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    with socket.create_server(("127.0.0.1", 0)) as sock:
        await GuardedSite(runner, sock, limits).start()
        yield sock.getsockname()[1]
        await runner.cleanup()


async def _is_cut(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), PATIENCE_S) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"\r\n\r\n",
        b"\r\n\r\n\r\n\r\nGET /x HTTP/1.1\r\n",
        b"GET /x HTTP/1.1\r\nHost: x\r\n",
        b"GET /x HTTP/1.1\r\nHost: x\r\n\r",
    ],
)
async def test_a_client_that_never_ends_its_head_is_cut(begun: bytes) -> None:
    async with small_site(ConnectionLimits(head_s=0.3)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begun)
        assert await _is_cut(reader)
        writer.close()


async def test_a_client_that_never_ends_the_head_of_its_next_request_is_cut() -> None:
    async with small_site(ConnectionLimits(idle_s=0.3)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET /x HTTP/1.1\r\n")
        assert await _is_cut(reader)
        writer.close()


async def test_of_too_many_that_begin_nothing_the_oldest_makes_room() -> None:
    async with small_site(ConnectionLimits(head_s=2 * PATIENCE_S, max_heads=20)) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        for reader, _ in silent[:10]:
            assert await _is_cut(reader)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
        for _, other in [*silent, (reader, writer)]:
            other.close()


async def test_of_too_many_that_begin_no_other_request_the_oldest_makes_room() -> None:
    async with small_site(ConnectionLimits(max_heads=20)) as port:
        idle = []
        for _ in range(30):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")
            idle.append((reader, writer))
        for reader, _ in idle[:10]:
            assert await _is_cut(reader)
        for reader, writer in idle[10:]:
            writer.write(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")
        for _, writer in idle:
            writer.close()


async def test_requests_that_come_together_are_all_answered_however_few_may_be_waited_for() -> None:
    async with small_site(ConnectionLimits(max_heads=1)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        for _ in range(20):
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_client_that_takes_nothing_of_its_answer_is_cut() -> None:
    async with small_site(ConnectionLimits(stalled_s=0.5)) as port:
        with socket.create_connection(("127.0.0.1", port)) as stalled:
            stalled.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")

            def is_cut() -> bool:
                try:
                    stalled.sendall(b" ")
                except OSError:
                    return True
                return False

            await until(is_cut)


async def test_a_client_that_is_slow_and_goes_on_gets_its_answer() -> None:
    async with small_site(ConnectionLimits(stalled_s=5.0)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(64):
            await reader.readexactly(1 << 20)
            await look_again()
        writer.close()
