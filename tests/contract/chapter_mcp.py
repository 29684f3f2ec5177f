"""The Model Context Protocol's endpoint; the protocol itself is tested in tests/integration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from api.openapi.examples import EXAMPLES
from tests.contract.cases import foreign, ok, refused, row
from tests.contract.stage import Answer, Stage
from tests.support.waiting import until

_PATH = "/integrations/mcp"
_ACCEPT = {"Accept": "application/json, text/event-stream"}
_NOWHERE = {**_ACCEPT, "Mcp-Session-Id": "no-such-session"}
_MODERN = "2026-07-28"
_DISCOVER = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": _MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
_PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


async def _session(stage: Stage) -> str:
    """A session of the own account, which no other case uses."""
    answer = await stage.ask("POST", _PATH, body=EXAMPLES["send_mcp_message"], headers=_ACCEPT)
    assert answer.status == 200, answer
    return answer.headers["Mcp-Session-Id"]


async def _streaming(stage: Stage) -> str:
    stage.kept["mcp_session"] = await _session(stage)
    return str(stage.kept["mcp_session"])


@asynccontextmanager
async def _until_it_streams(stage: Stage) -> AsyncIterator[None]:
    """End the session as soon as its stream is open: only then is it answered whole."""

    async def end() -> None:
        name = stage.kept["mcp_session"]
        principal = await stage.server.storage.keys.authenticate(stage.own.keys["tools"])
        session = stage.server.mcp.sessions.find(name, principal)
        await until(lambda: session.stream is not None and session.stream.streams)
        await stage.ask("DELETE", _PATH, headers={"Mcp-Session-Id": name})

    ending = asyncio.create_task(end())
    try:
        yield
    finally:
        await ending


async def _says_what_it_can(_: Stage, answer: Answer) -> None:
    result: dict[str, Any] = answer.body["result"]
    assert result["capabilities"]["tools"] == {"listChanged": True}
    assert _MODERN in result["supportedVersions"]


async def _is_a_stream(_: Stage, answer: Answer) -> None:
    assert answer.headers["Content-Type"] == "text/event-stream"


CASES = (
    *row(
        f"POST {_PATH}",
        ok(
            200,
            headers={**_ACCEPT, "MCP-Protocol-Version": _MODERN, "Mcp-Method": "server/discover"},
            body=_DISCOVER,
            then=_says_what_it_can,
        ),
        ok(
            202,
            name="a notification",
            headers={**_ACCEPT, "Mcp-Session-Id": _session},
            body={"jsonrpc": "2.0", "method": "notifications/initialized"},
        ),
        refused(404, "NOT_FOUND", headers=_NOWHERE, body=_PING),
        foreign(404, "NOT_FOUND", headers={**_ACCEPT, "Mcp-Session-Id": _session}, body=_PING),
    ),
    *row(
        f"GET {_PATH}",
        ok(
            200,
            headers={**_ACCEPT, "Mcp-Session-Id": _streaming},
            during=_until_it_streams,
            then=_is_a_stream,
        ),
        refused(400, "VALIDATION_ERROR", headers=_ACCEPT, fields=("Mcp-Session-Id",)),
        refused(404, "NOT_FOUND", headers=_NOWHERE),
        foreign(404, "NOT_FOUND", headers={**_ACCEPT, "Mcp-Session-Id": _session}),
    ),
    *row(
        f"DELETE {_PATH}",
        ok(200, headers={"Mcp-Session-Id": _session}),
        refused(400, "VALIDATION_ERROR", fields=("Mcp-Session-Id",)),
        refused(404, "NOT_FOUND", headers=_NOWHERE),
        foreign(404, "NOT_FOUND", headers={"Mcp-Session-Id": _session}),
    ),
)
