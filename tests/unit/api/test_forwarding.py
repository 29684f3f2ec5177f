"""Requests that another node must answer: what goes on to it, what comes back, what is said without it."""

from __future__ import annotations

import asyncio
import base64
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import aiohttp
import pytest
import sqlalchemy as sa
from aiohttp import web
from yarl import URL

from api.http.app import Neighbours, create_app
from api.http.forward import FORWARDED_BY, Forwarder, ForwardTimes
from api.mcp.gateway import McpGateway
from api.process.metrics import Metrics
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.system import idempotency_keys
from callcontrol.models import CallStatus
from callcontrol.nodes.forwarding import NoWay
from callcontrol.nodes.metrics import ForwardMetrics
from callcontrol.webrtc import listeners as rows
from callcontrol.webrtc.listeners import CallListener
from tests.support.api_facts import ACCOUNT, KEY, TOOLS_KEY, call
from tests.support.api_stage import ApiStage
from tests.support.memory_http import MemoryConnector, Serve
from tests.support.waiting import PATIENCE_S, until

_OWNER, _AT_OWNER = "b", "http://b.test"
_URL = "http://a.test"
_SOON = ForwardTimes(connect_s=0.2, answer_s=0.2, silence_s=0.2, look_every_s=0.02)
_EXECUTE = "/integrations/v1/tools/hang_up/execute"


@dataclass
class OtherNodes:
    """The other nodes, each with its address or the reason why it has none; in place of the leases."""

    ways: dict[str, str | NoWay] = field(default_factory=dict)
    name: str = "a"
    forgotten: list[str] = field(default_factory=list)

    async def way_to(self, node: str) -> str | NoWay:
        return self.ways.get(node, NoWay.DEAD)

    def forget(self, node: str) -> None:
        self.forgotten.append(node)

    async def is_another(self, node: str) -> bool:
        return self.ways.get(node, NoWay.DEAD) is not NoWay.DEAD


@dataclass(frozen=True)
class Received:
    """A request as the owner got it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    request: web.Request


Answer = Callable[[Received], Awaitable[web.StreamResponse] | web.StreamResponse]


@dataclass
class Owner:
    """A server in place of the node "b", whose answers are scripted by path."""

    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[Received] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        assert isinstance(request, web.Request)
        body = await request.read()
        got = Received(request.method, request.path, request.headers, body, request)
        self.requests.append(got)
        found = self.answers[got.path](got)
        return found if isinstance(found, web.StreamResponse) else await found


@dataclass(frozen=True)
class Reply:
    """Response that the client got."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    error: Mapping[str, Any]

    @property
    def code(self) -> str:
        return str(self.error["code"])


@dataclass
class Pair:
    """The node "a", which is asked, and the owner."""

    stage: ApiStage
    owner: Owner
    others: OtherNodes
    http: aiohttp.ClientSession
    metrics: ForwardMetrics

    def assert_counted(self, **wanted: int) -> None:
        """Assert that these requests were counted by outcome, and no others."""
        assert {name: count for name, count in self.metrics.outcomes.items() if count} == wanted
        assert self.metrics.took_s.count == wanted.get("answered", 0)

    async def call_elsewhere(self, **changes: Any) -> str:
        """A call that is active on the owner."""
        changes = {"status": CallStatus.IN_PROGRESS, **changes}
        record = await self.stage.add_call(call(new_id(), **changes))
        moved = sa.update(calls).where(calls.c.call_sid == record.call_sid).values(node=_OWNER)
        await self.stage.write(lambda connection: connection.execute(moved).close())
        return record.call_sid

    async def ask(
        self,
        method: str,
        path: str,
        *,
        key: str = KEY,
        headers: Mapping[str, str] | None = None,
        **parts: Any,
    ) -> Reply:
        lines = {"Authorization": f"Bearer {key}", **(headers or {})}
        async with self.http.request(
            method, URL(_URL + path, encoded=True), headers=lines, **parts
        ) as response:
            body = await response.read()
            shown: Any = await response.json() if response.status >= 400 and body else {}
            return Reply(response.status, response.headers, body, shown.get("error", shown))

    async def hang_up(self, **parts: Any) -> Reply:
        return await self.ask("DELETE", path_of(await self.call_elsewhere()), **parts)

    def answers(self, path: str, answer: Answer) -> None:
        self.owner.answers[path] = answer


@pytest.fixture
async def pair(stage: ApiStage, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    owner, others, servers = Owner(), OtherNodes({_OWNER: _AT_OWNER}), dict[str, Serve]()
    monkeypatch.setattr(aiohttp, "TCPConnector", lambda **_: MemoryConnector(servers))
    forwarder = Forwarder(cast(Any, others), _SOON)
    monkeypatch.setattr(stage.storage, "membership", others)
    tools, keys = stage.services.tools.service, stage.storage.keys
    mcp = McpGateway(tools, keys, stage.lifecycle, _URL, membership=cast(Any, others), forwarder=forwarder)
    front = create_app(
        stage.services,
        mcp=mcp,
        lifecycle=stage.lifecycle,
        metrics=Metrics(),
        public_url=_URL,
        neighbours=Neighbours(origins=["https://console.example.com"], forwarder=forwarder),
        check_replies=True,
    )
    behind = web.Application()
    behind.router.add_route("*", "/{tail:.*}", owner.handle)
    runners = [web.AppRunner(app, access_log=None, shutdown_timeout=0.1) for app in (front, behind)]
    for host, runner in zip(("a.test", "b.test"), runners, strict=True):
        await runner.setup()
        assert runner.server is not None
        servers[host] = runner.server
    async with aiohttp.ClientSession(connector=MemoryConnector(servers)) as http:
        yield Pair(stage, owner, others, http, forwarder.metrics)
    await mcp.close()
    await forwarder.close()
    for runner in runners:
        await runner.cleanup()


def path_of(call_sid: str) -> str:
    return f"/v1/Accounts/{ACCOUNT}/Calls/{call_sid}"


async def never(_: Received) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


def hangs_up_on_us(got: Received) -> web.StreamResponse:
    assert got.request.transport is not None
    got.request.transport.abort()
    return web.Response()


async def test_a_request_goes_on_as_it_came_and_its_answer_comes_back(pair: Pair) -> None:
    call_sid = await pair.call_elsewhere()
    path = path_of(call_sid)
    told = {"X-RateLimit-Limit": "7", "Access-Control-Allow-Origin": "*", "X-Other": "kept", "Server": "b"}
    pair.answers(path, lambda _: web.json_response({"data": "done"}, status=202, headers=told))
    asked = {
        "X-Request-Id": "request-1",
        "Origin": "https://console.example.com",
        "Connection": "X-Hop",
        "X-Hop": "1",
    }
    reply = await pair.ask("POST", path, headers={**asked, "X-Own": "kept"}, json={"mute_status": "mute"})
    pair.answers(f"{path}/", lambda _: web.Response())
    assert (await pair.ask("DELETE", f"{path}/?none=%2F+1&none=2")).status == 200
    got, odd = pair.owner.requests
    assert odd.request.raw_path == f"{path}/?none=%2F+1&none=2"
    assert (got.method, got.path, got.body) == ("POST", path, b'{"mute_status": "mute"}')
    assert got.headers["Authorization"] == f"Bearer {KEY}"
    assert got.headers["Content-Type"] == "application/json"
    assert (got.headers["X-Request-Id"], got.headers[FORWARDED_BY]) == ("request-1", "a")
    assert got.headers["X-Own"] == "kept"
    assert not {"Origin", "X-Hop"} & got.headers.keys()
    assert (reply.status, reply.body) == (202, b'{"data": "done"}')
    assert (reply.headers["X-Request-Id"], reply.headers["X-Other"]) == ("request-1", "kept")
    assert (reply.headers["Server"], reply.headers["X-RateLimit-Limit"]) == ("Trunkline", "600")
    assert reply.headers["Access-Control-Allow-Origin"] == "https://console.example.com"
    pair.assert_counted(answered=2)


async def test_an_encoded_body_goes_on_as_it_came(pair: Pair) -> None:
    path = path_of(await pair.call_elsewhere())
    pair.answers(path, lambda _: web.json_response({"data": "done"}))
    body = gzip.compress(b'{"mute_status": "mute"}')
    sent = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    assert (await pair.ask("POST", path, headers=sent, data=body)).status == 200
    (got,) = pair.owner.requests
    # The other node, here without our options, has decoded it.
    assert (got.headers["Content-Encoding"], got.body) == ("gzip", b'{"mute_status": "mute"}')


async def test_who_listens_in_does_at_the_node_of_the_call(pair: Pair) -> None:
    call_sid = await pair.call_elsewhere()
    path = f"/v1/calls/{call_sid}/listeners"
    listener = CallListener(new_id(), ACCOUNT, call_sid, "nobody", utc_now())
    await pair.stage.write(partial(rows.insert, listener=listener))
    one, told = f"{path}/{listener.listener_sid}", {"Location": f"{path}/{listener.listener_sid}"}
    answer = partial(web.Response, content_type="application/sdp", headers=told)
    pair.answers(path, lambda _: answer(status=201, text="v=0"))
    pair.answers(one, lambda _: web.Response(status=204))
    reply = await pair.ask("POST", path, headers={"Content-Type": "application/sdp"}, data=b"v=1")
    assert (reply.status, reply.body, reply.headers["Location"]) == (201, b"v=0", one)
    assert (await pair.ask("DELETE", one)).status == 204
    begun, ended = pair.owner.requests
    assert (begun.body, begun.headers["Content-Type"], ended.method) == (b"v=1", "application/sdp", "DELETE")
    assert (await pair.ask("DELETE", f"{path}/{new_id()}")).code == "NOT_FOUND"
    pair.assert_counted(answered=2)


async def test_a_refusal_comes_back_as_it_is(pair: Pair) -> None:
    call_sid = await pair.call_elsewhere()
    wait = {"Retry-After": "9", "X-RateLimit-Remaining": "0"}
    body = {"error": {"code": "RATE_LIMITED", "message": "Wait."}}
    pair.answers(path_of(call_sid), lambda _: web.json_response(body, status=429, headers=wait))
    reply = await pair.ask("DELETE", path_of(call_sid))
    assert (reply.status, reply.code) == (429, "RATE_LIMITED")
    assert (reply.headers["Retry-After"], reply.headers["X-RateLimit-Remaining"]) == ("9", "0")
    pair.assert_counted(answered=1)


@pytest.mark.parametrize("reason", [NoWay.DEAD, NoWay.NO_ADDRESS])
async def test_a_node_that_cannot_be_asked(pair: Pair, reason: NoWay) -> None:
    pair.others.ways[_OWNER] = reason
    reply = await pair.hang_up()
    assert (reply.status, reply.code, reply.headers["Retry-After"]) == (503, "NODE_UNREACHABLE", "2")
    assert f"on the node b, {reason.value}" in reply.error["message"]
    assert pair.owner.requests == []
    pair.assert_counted(no_node=1)


async def test_a_request_is_forwarded_once(pair: Pair) -> None:
    reply = await pair.hang_up(headers={FORWARDED_BY: "c"})
    assert (reply.status, reply.code) == (503, "NODE_UNREACHABLE")
    assert NoWay.FORWARDED.value in reply.error["message"]
    assert pair.owner.requests == []
    pair.assert_counted(second_hop=1)


async def test_the_mark_of_a_forwarded_request_proves_nothing(pair: Pair) -> None:
    call_sid = await pair.call_elsewhere()
    reply = await pair.ask("DELETE", path_of(call_sid), key="vp_" + "?" * 43, headers={FORWARDED_BY: "c"})
    assert reply.status == 401


async def test_a_node_that_does_not_listen(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    pair.others.ways[_OWNER] = "http://nobody.test"
    call_sid = await pair.call_elsewhere()
    for method, body in (("DELETE", None), ("POST", {"mute_status": "mute"})):
        reply = await pair.ask(method, f"{path_of(call_sid)}?signature=s3cret", json=body)
        assert (reply.status, reply.code, reply.headers["Retry-After"]) == (503, "NODE_UNREACHABLE", "2")
        assert NoWay.UNREACHABLE.value in reply.error["message"]
    pair.assert_counted(not_connected=2)
    assert pair.others.forgotten == [_OWNER, _OWNER], "it may have stopped since it was read"
    assert "cannot be reached at http://nobody.test: Connection refused" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("answer", [never, hangs_up_on_us])
async def test_a_node_that_got_the_request_and_does_not_answer(
    pair: Pair, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    """A request that can be repeated is refused for now; of a POST the outcome is unknown."""
    call_sid = await pair.call_elsewhere()
    pair.answers(path_of(call_sid), answer)
    reply = await pair.ask("DELETE", f"{path_of(call_sid)}?signature=s3cret")
    assert (reply.status, reply.code, reply.headers["Retry-After"]) == (503, "NODE_UNREACHABLE", "2")
    assert "has not answered DELETE" in caplog.text and "s3cret" not in caplog.text
    reply = await pair.ask("POST", path_of(call_sid), json={"dtmf": {"digits": "1"}})
    assert (reply.status, reply.code) == (503, "OUTCOME_UNKNOWN")
    assert "Retry-After" not in reply.headers and "may have been carried out" in reply.error["message"]
    assert [got.method for got in pair.owner.requests] == ["DELETE", "POST"]
    assert pair.others.forgotten == []
    pair.assert_counted(not_answered=2)


async def test_each_style_says_it_in_its_own_words(pair: Pair) -> None:
    pair.others.ways[_OWNER] = "http://nobody.test"
    call_sid = await pair.call_elsewhere()
    path = f"/2010-04-01/Accounts/{ACCOUNT}/Calls/{call_sid}.json"
    basic = base64.b64encode(f"{ACCOUNT}:{KEY}".encode()).decode()
    reply = await pair.ask(
        "POST", path, headers={"Authorization": f"Basic {basic}"}, data={"Status": "completed"}
    )
    assert (reply.status, reply.code) == (503, "20503")
    pair.others.ways[_OWNER] = _AT_OWNER
    pair.answers(path, lambda _: web.json_response({"sid": call_sid}))
    reply = await pair.ask(
        "POST", path, headers={"Authorization": f"Basic {basic}"}, data={"Status": "completed"}
    )
    (got,) = pair.owner.requests
    assert (reply.status, got.body) == (200, b"Status=completed")
    assert got.headers["Authorization"] == f"Basic {basic}"


async def test_a_trace_is_where_the_call_was(pair: Pair) -> None:
    call_sid = await pair.call_elsewhere(status=CallStatus.COMPLETED)
    path = f"/v1/calls/{call_sid}/trace"
    pair.answers(path, lambda _: web.json_response({"data": "a ladder"}))
    assert (await pair.ask("GET", path)).body == b'{"data": "a ladder"}'
    pair.others.ways[_OWNER] = NoWay.DEAD
    reply = await pair.ask("GET", path)
    assert reply.status == 200 and b'"messages":[]' in reply.body, (
        "it was in the memory of a node that is gone"
    )


async def test_the_node_that_executes_has_the_key_and_the_count(pair: Pair) -> None:
    """An idempotency key is claimed where the request runs, and a use of a tool counts there."""
    call_sid = await pair.call_elsewhere()
    keys: list[list[str]] = []

    async def executes(got: Received) -> web.StreamResponse:
        held = sa.select(idempotency_keys.c.key)
        read = pair.stage.storage.database.read
        keys.append(list(await read(lambda connection: connection.scalars(held).all())))
        return web.json_response({"data": "hung up"})

    pair.answers(_EXECUTE, executes)
    body = {"arguments": {"call_sid": call_sid}}
    for _ in range(2):
        reply = await pair.ask("POST", _EXECUTE, key=TOOLS_KEY, headers={"Idempotency-Key": "k-1"}, json=body)
        assert (reply.status, reply.body) == (200, b'{"data": "hung up"}')
    assert keys == [[], []], "it is held nowhere while the other node claims it"
    assert [got.headers["Idempotency-Key"] for got in pair.owner.requests] == ["k-1", "k-1"]
    assert not pair.stage.services.tools.service.uses


# --- bodies of responses ------------------------------------------------------------------------------------


async def test_a_large_body_is_passed_on_in_parts(pair: Pair) -> None:
    call_sid = await pair.call_elsewhere()
    part = bytes(range(256)) * 256
    sent = 0

    async def answer(got: Received) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        response.content_length = 64 * len(part)
        await response.prepare(got.request)
        for _ in range(64):
            await response.write(part)
            sent += 1
        return response

    pair.answers(path_of(call_sid), answer)
    async with pair.http.delete(
        _URL + path_of(call_sid), headers={"Authorization": f"Bearer {KEY}"}
    ) as response:
        assert response.content_length == 64 * len(part)
        assert await response.content.readexactly(1000) == part[:1000]
        rest = await response.read()
    assert 1000 + len(rest) == 64 * len(part) and rest.endswith(part)


@pytest.mark.parametrize("ends", ["aborted", "silent"])
async def test_a_body_that_does_not_come_whole_is_not_taken_for_whole(pair: Pair, ends: str) -> None:
    call_sid = await pair.call_elsewhere()

    async def answer(got: Received) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(got.request)
        await response.write(b"the beginning")
        return hangs_up_on_us(got) if ends == "aborted" else await never(got)

    pair.answers(path_of(call_sid), answer)
    with pytest.raises(aiohttp.ClientPayloadError):
        await pair.ask("DELETE", path_of(call_sid))


async def test_the_connection_to_the_node_ends_with_the_client(pair: Pair) -> None:
    call_sid = await pair.call_elsewhere()
    seen: list[web.Request] = []

    async def answer(got: Received) -> web.StreamResponse:
        seen.append(got.request)
        response = web.StreamResponse()
        await response.prepare(got.request)
        await response.write(b"event: message\n\n")
        return await never(got)

    pair.answers(path_of(call_sid), answer)
    asked = await pair.http.delete(_URL + path_of(call_sid), headers={"Authorization": f"Bearer {KEY}"})
    assert await asked.content.readany() == b"event: message\n\n"
    asked.close()
    (request,) = seen
    await until(lambda: request.transport is None or request.transport.is_closing())


# --- sessions of the Model Context Protocol -----------------------------------------------------------------

_MCP = "/integrations/mcp"
_ACCEPT = {"Accept": "application/json, text/event-stream"}
_PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


async def test_a_session_names_its_node(pair: Pair) -> None:
    opened = await pair.ask("POST", _MCP, key=TOOLS_KEY, headers=_ACCEPT, json=_HELLO)
    named = opened.headers["Mcp-Session-Id"]
    assert opened.status == 200 and named.endswith(".a")
    session = {**_ACCEPT, "Mcp-Session-Id": named}
    answered = await pair.ask("POST", _MCP, key=TOOLS_KEY, headers=session, json=_PING)
    assert (answered.status, answered.headers["Mcp-Session-Id"]) == (200, named)
    bare = {**_ACCEPT, "Mcp-Session-Id": named.removesuffix(".a")}
    assert (await pair.ask("POST", _MCP, key=TOOLS_KEY, headers=bare, json=_PING)).status == 404
    assert (await pair.ask("DELETE", _MCP, key=TOOLS_KEY, headers=session)).status == 200
    assert (await pair.ask("POST", _MCP, key=TOOLS_KEY, headers=session, json=_PING)).status == 404
    assert pair.owner.requests == []


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_session_of_another_node_is_served_there(pair: Pair, method: str) -> None:
    session = {**_ACCEPT, "Mcp-Session-Id": "1f.b"}
    told = {"Content-Type": "text/event-stream", "Mcp-Session-Id": "1f.b"}
    pair.answers(_MCP, lambda _: web.Response(body=b"data: {}\n\n", headers=told))
    body = _PING if method == "POST" else None
    reply = await pair.ask(method, _MCP, key=TOOLS_KEY, headers=session, json=body)
    assert (reply.status, reply.body) == (200, b"data: {}\n\n")
    assert reply.headers["Mcp-Session-Id"] == "1f.b"
    assert pair.owner.requests[0].headers["Mcp-Session-Id"] == "1f.b"


async def test_a_session_of_a_node_that_is_gone_is_unknown(pair: Pair) -> None:
    pair.others.ways[_OWNER] = NoWay.DEAD
    session = {**_ACCEPT, "Mcp-Session-Id": "1f.b"}
    reply = await pair.ask("POST", _MCP, key=TOOLS_KEY, headers=session, json=_PING)
    assert (reply.status, reply.code) == (404, "NOT_FOUND"), "the client opens another one"


@pytest.mark.parametrize("refused", [False, True])
async def test_a_tool_of_a_session_here_reaches_a_call_elsewhere(pair: Pair, refused: bool) -> None:
    call_sid = await pair.call_elsewhere()
    result = {"call_sid": call_sid, "status": "completed"}
    told: dict[str, Any] = {"data": {"tool": "hang_up", "result": result, "duration_ms": 3}}
    if refused:
        told = {"error": {"code": "CALL_ENDED", "message": "The call has already ended."}}
    pair.answers(_EXECUTE, lambda _: web.json_response(told, status=409 if refused else 200))
    opened = await pair.ask("POST", _MCP, key=TOOLS_KEY, headers=_ACCEPT, json=_HELLO)
    session = {**_ACCEPT, "Mcp-Session-Id": opened.headers["Mcp-Session-Id"]}
    uses = {"name": "hang_up", "arguments": {"call_sid": call_sid}}
    body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": uses}
    async with asyncio.timeout(PATIENCE_S):
        reply = await pair.ask("POST", _MCP, key=TOOLS_KEY, headers=session, json=body)
    (got,) = pair.owner.requests
    assert (got.headers["Authorization"], got.headers[FORWARDED_BY]) == (f"Bearer {TOOLS_KEY}", "a")
    assert call_sid.encode() in got.body
    assert (b"CALL_ENDED" if refused else b'"status"') in reply.body
    assert (b'"isError":true' in reply.body) is refused
