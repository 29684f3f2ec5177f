"""Model Context Protocol over streamable HTTP: one path for agents that use an account's tools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from api.http.endpoint import Context, Endpoint, Handover, Spoken
from api.schemas.base import NoBody, NoQuery
from callcontrol.errors import NotFound

__all__ = ["ENDPOINTS"]

_PATH = "/integrations/mcp"
_SESSION = {"Mcp-Session-Id": "The session, as the answer to `initialize` named it."}
_VERSION = {"MCP-Protocol-Version": "The version of the protocol that was agreed on."}
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
_REFUSED = ("The message was not understood, or not in this state.", {_JSON: _REFUSAL})
_NOT_ACCEPTABLE = ("`Accept` has not both `application/json` and `text/event-stream`.", {_JSON: _REFUSAL})


async def _speak(context: Context[NoBody, NoQuery]) -> Handover:
    return Handover(partial(context.services.mcp.answer, context.principal, context.raw))


async def send_mcp_message(context: Context[NoBody, NoQuery]) -> Handover:
    """Receive a message of a client, and answer it."""
    return await _speak(context)


async def open_mcp_stream(context: Context[NoBody, NoQuery]) -> Handover:
    """Open the stream of messages that the server initiates."""
    return await _speak(context)


async def end_mcp_session(context: Context[NoBody, NoQuery]) -> Handover:
    """End a session."""
    return await _speak(context)


def _endpoint(
    method: str, handler: Any, summary: str, description: str, spoken: Spoken
) -> Endpoint[Any, Any]:
    return Endpoint(
        method=method,
        path=_PATH,
        handler=handler,
        scope="tools",
        service="tools",
        summary=summary,
        description=description,
        tag="tools",
        response=None,
        errors=(NotFound,),
        spoken=spoken,
    )


ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    _endpoint(
        "POST",
        send_mcp_message,
        "Send a message of the Model Context Protocol",
        "`initialize` opens a session, which the header `Mcp-Session-Id` of the answer names. With the "
        "version 2026-07-28 in `MCP-Protocol-Version`, each request stands for itself.",
        Spoken(
            request=_MESSAGE,
            headers=_SESSION | _VERSION,
            answers={
                200: ("The answer, or a stream that ends with it.", {_JSON: _MESSAGE, _STREAM: _EVENTS}),
                202: ("A notification or an answer was taken.", {}),
                400: _REFUSED,
                404: ("The method or the session is not known.", {_JSON: _REFUSAL}),
                406: _NOT_ACCEPTABLE,
                500: ("It could not be answered.", {_JSON: _REFUSAL}),
            },
        ),
    ),
    _endpoint(
        "GET",
        open_mcp_stream,
        "Hear what the Model Context Protocol server says of itself",
        "A stream of events: `notifications/tools/list_changed` when the tools of the account change. One "
        "for each session.",
        Spoken(
            headers=_SESSION | _VERSION,
            answers={
                200: ("The stream.", {_STREAM: _EVENTS}),
                405: ("This version of the protocol has no such stream.", {}),
                406: _NOT_ACCEPTABLE,
                409: ("The session has a stream already.", {_JSON: _REFUSAL}),
            },
        ),
    ),
    _endpoint(
        "DELETE",
        end_mcp_session,
        "End a session of the Model Context Protocol",
        "What is being answered in it is cancelled.",
        Spoken(
            headers=_SESSION | _VERSION,
            answers={
                200: ("It is over.", {}),
                405: ("This version of the protocol has no sessions.", {}),
            },
        ),
    ),
)
