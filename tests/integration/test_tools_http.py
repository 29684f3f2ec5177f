"""Tools over real connections: servers that answer, are slow, send too much, lie, or stand with us."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from standardwebhooks import Webhook

from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.egress.aio.resolver import DestinationGuard
from callcontrol.errors import (
    Conflict,
    NotFound,
    RateLimited,
    ToolFailed,
    ToolTimedOut,
    ValidationFailed,
)
from callcontrol.models import Principal
from callcontrol.tools.aio import service as services
from callcontrol.tools.aio.http_tools import HttpToolClient
from callcontrol.tools.aio.service import Toolbox
from callcontrol.tools.answers import MAX_ANSWER_BYTES, MAX_SHOWN_CHARS
from callcontrol.tools.usage import UsageFilter
from tests.support.waiting import PATIENCE_S, until
from tests.support.webhook_stage import Answer, Gate, Received, Receiver

pytestmark = pytest.mark.asyncio(loop_scope="module")

NUMBER = {
    "type": "object",
    "properties": {"number": {"type": "string"}},
    "required": ["number"],
    "additionalProperties": False,
}
GOOD = {"number": "17"}


@dataclass
class Stage:
    """A toolbox over a database of its own, an account, and the server behind its tools."""

    box: Toolbox
    receiver: Receiver
    account_sid: str
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    began: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def principal(self, *tools: str) -> Principal:
        scopes = frozenset({"tools", *(f"tool:{name}" for name in tools)})
        return Principal(self.account_sid, f"key-{'-'.join(tools)}", "tools", scopes)

    async def tool(self, name: str, answer: Answer, **values: Any) -> str:
        """Register a tool whose server answers so."""
        self.receiver.answers[f"/{name}"] = answer
        given = {"description": "x", "url": self.receiver.url(f"/{name}"), "input_schema": NUMBER}
        await self.box.registry.register(self.account_sid, {"name": name, **given, **values})
        return name

    async def use(self, name: str, arguments: Mapping[str, Any] = GOOD) -> Any:
        return (await self.box.service.execute(self.principal(), name, arguments)).content

    async def failure(self, name: str) -> ToolFailed:
        with pytest.raises(ToolFailed) as caught:
            await self.use(name)
        return caught.value


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("tools")
    storage = await Storage.open(
        f"sqlite+aiosqlite:///{folder / 'tools.db'}",
        StorageSettings(allow_private_destinations=True),
        deliver=False,
    )
    account, _ = await storage.accounts.create("Acme")
    receiver = Receiver()
    await receiver.start()

    async def wait(_: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        made.began.append(arguments["to"])
        await made.gate.wait()
        made.done.append(arguments["to"])
        return {"status": "queued"}

    box = Toolbox(storage.database, storage.writer, storage.destinations, storage.keys, {"place_call": wait})
    made = Stage(box, receiver, account.account_sid)
    yield made
    made.gate.set()
    await box.close()
    await receiver.close()
    await storage.close()


def says(body: bytes, media_type: str = "application/json", status: int = 200) -> Answer:
    return lambda _: web.Response(body=body, status=status, headers={"Content-Type": media_type})


async def test_arguments_are_posted_signed_and_the_answer_is_the_result(stage: Stage) -> None:
    name = await stage.tool("posted", says(b'{"state": "packed"}'), headers={"X-Shop": "t0p"})
    assert await stage.use(name) == {"state": "packed"}
    got = stage.receiver.requests[-1]
    found = await stage.box.registry.get(stage.account_sid, name)
    assert found.http is not None
    assert Webhook(found.http.secret).verify(got.body, got.headers) == GOOD
    assert (got.method, got.headers["X-Shop"], got.headers["X-Service-Event"]) == (
        "POST",
        "t0p",
        "tool.posted",
    )
    assert got.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH"])
async def test_every_method_carries_the_arguments(stage: Stage, method: str) -> None:
    name = await stage.tool(f"by-{method}", says(b"done", "text/plain; charset=utf-8"), method=method)
    assert await stage.use(name, {"number": "1 7&x=2"}) == "done"
    got = stage.receiver.requests[-1]
    assert got.method == method and got.headers["webhook-signature"].startswith("v1,")
    if method in ("GET", "DELETE"):
        assert got.query == {"number": "1 7&x=2"} and got.body == b""
    else:
        assert json.loads(got.body) == {"number": "1 7&x=2"} and got.query == {}


async def test_nothing_is_a_result_too(stage: Stage) -> None:
    assert await stage.use(await stage.tool("silent", lambda _: web.Response(status=204))) is None


async def _endless(got: Received) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(got.request)
    try:
        while True:
            await response.write(b" " * 65536)
    except (ConnectionError, asyncio.CancelledError):
        return response


@pytest.mark.parametrize(
    ("case", "answer", "told", "shown"),
    [
        ("garbage", says(b"{'no': json"), "not JSON", "{'no': json"),
        ("image", says(b"\x89PNG", "image/png"), "image/png", None),
        ("huge", says(b"1" * (MAX_ANSWER_BYTES + 1)), "longer", None),
        ("endless", _endless, "longer", None),
        ("deep", says(b"[" * 5000 + b"]" * 5000), "not JSON", "[" * MAX_SHOWN_CHARS),
    ],
    ids=["garbage", "image", "huge", "endless", "deep"],
)
async def test_answers_that_are_no_result_are_told(
    stage: Stage, case: str, answer: Answer, told: str, shown: str | None
) -> None:
    failure = await stage.failure(await stage.tool(case, answer))
    assert told in failure.message
    assert failure.details == {"status": 200, **({"answer": shown} if shown else {})}


async def test_what_a_server_refuses_with_is_passed_on(stage: Stage) -> None:
    name = await stage.tool("refusing", says(b'{"error": "no order 17"}', status=404))
    failure = await stage.failure(name)
    assert failure.details == {"status": 404, "answer": '{"error": "no order 17"}'}


async def test_redirects_are_not_followed(stage: Stage) -> None:
    def redirect(_: Received) -> web.Response:
        return web.Response(status=307, headers={"Location": stage.receiver.url("/elsewhere")})

    assert (await stage.failure(await stage.tool("redirecting", redirect))).details["status"] == 307
    assert "/elsewhere" not in [got.path for got in stage.receiver.requests]


async def test_a_slow_server_is_given_up(stage: Stage) -> None:
    gate = Gate()
    name = await stage.tool("slow", gate, timeout_s=1)
    with pytest.raises(ToolTimedOut):
        await stage.use(name)
    gate.open()


async def test_a_server_that_is_not_there_is_told_without_its_address(stage: Stage) -> None:
    name = await stage.tool("gone", says(b""), url="http://127.0.0.1:9/tools?token=hidden")
    assert "hidden" not in (await stage.failure(name)).message


async def test_an_answer_is_held_to_the_output_schema(stage: Stage) -> None:
    answers = iter([b'{"number": "x"}', b'{"number": 7, "more": 1}', b'"text"'])
    name = await stage.tool(
        "described",
        lambda _: web.Response(body=next(answers), content_type="application/json"),
        output_schema=NUMBER,
    )
    assert await stage.use(name) == {"number": "x"}
    failure = await stage.failure(name)
    assert {error["field"] for error in failure.details["errors"]} == {"result.number", "result.more"}
    assert (failure.details["status"], failure.details["answer"]) == (200, '{"number": 7, "more": 1}')
    assert [error["field"] for error in (await stage.failure(name)).details["errors"]] == ["result"]


async def test_a_name_that_leads_into_our_network_later_is_not_connected_to(stage: Stage) -> None:
    """The name was public when the tool was registered, and is not when it is used."""
    led = ["93.184.215.14"]
    guard = DestinationGuard(lookup=lambda host, port: [(led[0], port)])
    name = await stage.tool("rebinding", says(b"{}"))
    found = await stage.box.registry.get(stage.account_sid, name)
    assert found.http is not None
    client = HttpToolClient(guard)
    moved = replace(found.http, url=f"https://shop.example:{stage.receiver.port}/rebinding")
    guard.check_url(moved.url, schemes=("https",))
    led[0] = "127.0.0.1"
    before = stage.receiver.connections
    with pytest.raises(ToolFailed) as caught:
        await client.ask(moved, GOOD)
    await client.close()
    assert "loopback" in caught.value.message and stage.receiver.connections == before


async def test_a_disabled_tool_and_one_that_the_key_does_not_name_cannot_be_used(stage: Stage) -> None:
    name = await stage.tool("switched", says(b"{}"))
    other = stage.principal("place_call")
    with pytest.raises(NotFound):
        await stage.box.service.execute(other, name, GOOD)
    assert [tool.name for tool in await stage.box.service.list(other)] == ["place_call"]
    await stage.box.registry.set_enabled(stage.account_sid, name, enabled=False)
    with pytest.raises(Conflict):
        await stage.use(name)
    assert name not in [tool.name for tool in await stage.box.service.list(stage.principal())]


async def test_wrong_arguments_never_reach_the_server(stage: Stage) -> None:
    name = await stage.tool("guarded", says(b"{}"))
    with pytest.raises(ValidationFailed) as caught:
        await stage.use(name, {"number": 17, "more": 1})
    assert {error.field for error in caught.value.errors} == {"arguments.number", "arguments.more"}
    assert "/guarded" not in [got.path for got in stage.receiver.requests]


async def test_an_account_uses_so_many_at_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    name = await stage.tool("crowded", gate)
    monkeypatch.setattr(services, "MAX_AT_ONCE", 2)
    uses = [asyncio.create_task(stage.use(name)) for _ in range(2)]
    await until(lambda: gate.waiting == 2)
    with pytest.raises(RateLimited):
        await stage.use(name)
    uses[0].cancel()
    await asyncio.wait({uses[0]})
    third = asyncio.create_task(stage.use(name))
    await until(lambda: gate.waiting == 3)
    gate.open()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(uses[1], third)


async def test_what_a_built_in_tool_has_begun_is_brought_to_its_end(stage: Stage) -> None:
    use = asyncio.create_task(stage.use("place_call", {"to": "+919800000001", "message": "Hello."}))
    await until(lambda: bool(stage.began))
    use.cancel()
    await asyncio.wait({use})
    assert use.cancelled() and not stage.done
    stage.gate.set()
    await until(lambda: stage.done == ["+919800000001"])


async def test_uses_are_counted_with_their_failures(stage: Stage) -> None:
    name = await stage.tool("counted", says(b"", status=503))
    for _ in range(2):
        await stage.failure(name)
    stage.receiver.answers["/counted"] = says(b"{}")
    await stage.use(name)
    with pytest.raises(ValidationFailed):
        await stage.use(name, {})
    rows, _ = await stage.box.usage.of_account(
        stage.account_sid, UsageFilter("0000-00-00", "9999-99-99", tool=name)
    )
    assert [(key.tool, usage.calls, usage.errors) for key, usage in rows] == [("counted", 3, 2)]
