"""Model Context Protocol over streamable HTTP: one path for agents that use an account's tools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from api.http.endpoint import Context, Handover, Routes, Spoken
from api.schemas.base import NoBody, NoQuery
from callcontrol.errors import NotFound

__all__ = ["routes"]

_PATH = "/integrations/mcp"
_SESSION = {"Mcp-Session-Id": "The session, as named by the response to `initialize`."}
_VERSION = {"MCP-Protocol-Version": "The negotiated version of the protocol."}
_MESSAGE: Mapping[str, Any] = {
    "type": "object",
    "required": ["jsonrpc"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer"]},
        "method": {"type": "string"},
        "params": {"type": "object"},
        "result": {"type": "object"},
        "error": {"type": "object"},
    },
}
_REFUSAL: Mapping[str, Any] = {
    "type": "object",
    "required": ["jsonrpc", "error"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer", "null"]},
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
        },
    },
}
_EVENTS: Mapping[str, Any] = {
    "type": "object",
    "description": "One event of the stream; its data is a message.",
    "properties": {"event": {"const": "message"}, "data": {"type": "string"}},
}
_JSON, _STREAM = "application/json", "text/event-stream"
_REFUSED = ("The message is invalid, or not allowed in this state.", {_JSON: _REFUSAL})
_NOT_ACCEPTABLE = ("`Accept` lacks `application/json` or `text/event-stream`.", {_JSON: _REFUSAL})

routes = Routes("tools", tag="tools", service="tools", errors=(NotFound,), owned=True)


async def _speak(context: Context[NoBody, NoQuery]) -> Handover:
    return Handover(partial(context.mcp.answer, context.principal, context.raw))


@routes.post(
    _PATH,
    spoken=Spoken(
        request=_MESSAGE,
        headers=_SESSION | _VERSION,
        answers={
            200: ("The response, or a stream that ends with it.", {_JSON: _MESSAGE, _STREAM: _EVENTS}),
            202: ("A notification or a response was accepted.", {}),
            400: _REFUSED,
            404: ("The method or the session is unknown.", {_JSON: _REFUSAL}),
            406: _NOT_ACCEPTABLE,
            500: ("An internal error.", {_JSON: _REFUSAL}),
        },
    ),
)
async def send_mcp_message(context: Context[NoBody, NoQuery]) -> Handover:
    """
    Send a message of the Model Context Protocol.

    `initialize` opens a session, which the header `Mcp-Session-Id` of the answer names. With the version
    2026-07-28 in `MCP-Protocol-Version`, each request stands for itself.
    """
    return await _speak(context)


@routes.get(
    _PATH,
    spoken=Spoken(
        headers=_SESSION | _VERSION,
        answers={
            200: ("The stream.", {_STREAM: _EVENTS}),
            405: ("This version of the protocol has no such stream.", {}),
            406: _NOT_ACCEPTABLE,
            409: ("The session already has a stream.", {_JSON: _REFUSAL}),
        },
    ),
)
async def open_mcp_stream(context: Context[NoBody, NoQuery]) -> Handover:
    """
    Receive notifications of the Model Context Protocol server.

    A stream of events: `notifications/tools/list_changed` when the tools of the account change. One for each
    session.
    """
    return await _speak(context)


@routes.delete(
    _PATH,
    spoken=Spoken(
        headers=_SESSION | _VERSION,
        answers={
            200: ("The session has ended.", {}),
            405: ("This version of the protocol has no sessions.", {}),
        },
    ),
)
async def end_mcp_session(context: Context[NoBody, NoQuery]) -> Handover:
    """
    End a session of the Model Context Protocol.

    Its requests in progress are cancelled.
    """
    return await _speak(context)
