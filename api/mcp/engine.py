"""
The Model Context Protocol: the SDK's server, which calls the account's tools.

Both generations of the protocol are served: sessions that begin with ``initialize`` (2024-11-05 to
2025-11-25), and stateless requests (2026-07-28), where a client is notified of changes by
``subscriptions/listen``.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import mcp_types as types
from mcp.server import InitializationOptions, NotificationOptions, Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from api.http.body import MAX_BODY_BYTES
from api.mcp.asgi import AsgiApp, AsgiMessage
from api.mcp.messages import error_message, id_of
from api.mcp.sessions import Session
from callcontrol.errors import DomainError, NodeUnreachable, NotFound, ValidationFailed, describe
from callcontrol.models import Principal
from callcontrol.tools.aio.service import ToolService
from callcontrol.tools.models import Tool, ToolResult

if TYPE_CHECKING:
    from api.http.forward import Forwarder

__all__ = ["Engine"]

_log = logging.getLogger("api.mcp")

# Scope keys of the request's principal and session.
_PRINCIPAL, _SESSION = "trunkline.principal", "trunkline.session"
_ID = b"mcp-session-id"
PAGE_SIZE = 50
_MAX_SHOWN_CHARS = 64
# Descriptions and schemas of a page are written at once, and held in memory for a client that reads slowly.
MAX_PAGE_CHARS = 128 * 1024
MAX_LISTENERS_OF_ACCOUNT = 50
_PROGRESS_EVERY_S = 1.0
_TELL_TIMEOUT_S = 5.0
_INSTRUCTIONS = (
    "Tools of a telephony account: they place and end phone calls, send one-time passwords and messages, and "
    "look things up. Calls and messages reach real people and cost money; numbers are in E.164, such as "
    "+919800000001."
)

_Headers = Iterable[tuple[bytes, bytes]]
_Context = ServerRequestContext[Any, Any]
_ResultT = TypeVar("_ResultT")


class _ToolServer(Server[Any]):
    """Announces change notifications in every handshake; the SDK has no setting for it."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        told = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(told, experimental_capabilities, extensions)


class _Listeners:
    """Subscribers of one account to changes, and the number of their streams."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.handler = ListenHandler(self.bus, max_subscriptions=MAX_LISTENERS_OF_ACCOUNT)
        self.streams = 0


class Engine:
    """Serves the protocol from `start` to `close`; the scope of a request to `app` must have its `state`."""

    def __init__(
        self,
        tools: ToolService,
        version: str,
        node: str | None = None,
        forwarder: Forwarder | None = None,
    ) -> None:
        # The SDK logs session ids, which must not appear in a log.
        for name in ("mcp", "sse_starlette"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._tools = tools
        self._forwarder = forwarder
        # The SDK makes the ids of sessions; what follows is added to them outside of it.
        self._suffix = b"" if node is None else f".{node}".encode()
        self._listeners: dict[str, _Listeners] = {}
        self._work: set[asyncio.Task[Any]] = set()
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        server = _ToolServer(
            "trunkline",
            version=version,
            title="Trunkline",
            instructions=_INSTRUCTIONS,
            # Arguments come in the body only; no headers repeat them, so there is nothing to compare.
            get_tool_input_schema=lambda _: None,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=self._listen,
        )
        server.add_notification_handler("notifications/initialized", types.NotificationParams, self._ready)
        server.middleware.clear()
        # `Sessions` ends sessions, as it knows their accounts.
        self._manager = StreamableHTTPSessionManager(
            server, session_idle_timeout=None, max_sessions=None, max_request_body_size=MAX_BODY_BYTES
        )

    @property
    def app(self) -> AsgiApp:
        """ASGI application that serves the requests."""
        return self._serve

    async def _serve(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[AsgiMessage]],
        send: Callable[[AsgiMessage], Awaitable[None]],
    ) -> None:
        async def send_named(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._named(message.get("headers", ()))}
            await send(message)

        scope = {**scope, "headers": self._unnamed(scope["headers"])}
        await self._manager.asgi_app(scope, receive, send_named)

    def _named(self, headers: _Headers) -> _Headers:
        """Headers of a response, with the node in the id of a session."""
        return [(name, value + self._suffix if name.lower() == _ID else value) for name, value in headers]

    def _unnamed(self, headers: _Headers) -> _Headers:
        """Headers of a request, with the id of a session as the SDK knows it."""
        return [(name, value.removesuffix(self._suffix) if name == _ID else value) for name, value in headers]

    async def start(self) -> None:
        """Start the SDK's session manager."""
        ready = asyncio.Event()

        async def run() -> None:
            # One task must enter and leave it, because it holds a task group.
            async with self._manager.run():
                ready.set()
                await self._stop.wait()

        self._running = asyncio.create_task(run())
        await ready.wait()

    def hush(self) -> None:
        """End the streams of subscribers in the protocol's way."""
        for listeners in self._listeners.values():
            listeners.handler.close()

    async def close(self) -> None:
        """End every session and stream, and cancel requests in progress."""
        self.hush()
        for task in self._work:
            task.cancel()
        self._stop.set()
        if self._running is not None:
            await asyncio.wait({self._running})

    @staticmethod
    def has_sessions(version: str | None) -> bool:
        """True for a protocol version with sessions; None is a request that names no version."""
        return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS

    @staticmethod
    def version_error(version: str | None, body: bytes) -> dict[str, Any] | None:
        """Error message for a request in a protocol version that is not served; None for one that is."""
        if version is None or version in KNOWN_PROTOCOL_VERSIONS:
            return None
        requested, served = version[:_MAX_SHOWN_CHARS], list(KNOWN_PROTOCOL_VERSIONS)
        text = f"Unsupported protocol version {requested}; supported are {', '.join(served)}."
        data = {"supported": served, "requested": requested}
        return error_message(id_of(body), types.UNSUPPORTED_PROTOCOL_VERSION, text, data)

    @staticmethod
    def initialize_error(version: str | None, body: bytes) -> dict[str, Any] | None:
        """
        Error message for an `initialize` with wrong parameters; None for any other message or version.

        The SDK would refuse it in a session that it has opened for it.
        """
        message = json.loads(body) if Engine.has_sessions(version) else {}
        if message.get("method") != "initialize" or "id" not in message:
            return None
        try:
            types.InitializeRequestParams.model_validate(message.get("params") or {}, by_name=False)
        except ValidationError as error:
            wrong = ", ".join(dict.fromkeys(str(item["loc"][0]) for item in error.errors()))
            text = f"initialize has missing or invalid parameters: {wrong}."
            return error_message(message["id"], types.INVALID_PARAMS, text)
        return None

    @staticmethod
    def state(principal: Principal, session: Session | None) -> dict[str, Any]:
        """Entries that `app` requires in the scope of a request."""
        return {_PRINCIPAL: principal, _SESSION: session}

    async def end(self, session_id: str) -> None:
        """End a session by the DELETE request that a client would send."""

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: MutableMapping[str, Any]) -> None:
            pass

        headers = [(b"mcp-session-id", session_id.encode())]
        scope = {"type": "http", "method": "DELETE", "path": "/", "query_string": b"", "headers": headers}
        await self.app(scope, receive, send)

    def tools_changed(self, account_sid: str, sessions: list[Session]) -> None:
        """Notify the clients of an account that its tools have changed."""
        for session in sessions:
            if session.tell is not None:
                self._keep(_told(session))
        if account_sid in self._listeners:
            self._keep(self._listeners[account_sid].bus.publish(ToolsListChanged()))

    async def _list(
        self, context: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = list(await self._refusable(self._tools.list(_principal(context))))
        cursor = params.cursor if params is not None else None
        # The cursor is the name of the last tool sent, so a change in between neither repeats nor skips any.
        first = 0 if cursor is None else bisect_right([tool.name for tool in tools], cursor)
        page = _page(tools[first : first + PAGE_SIZE])
        more = len(tools) > first + len(page)
        return types.ListToolsResult(
            tools=[_shown(tool) for tool in page], next_cursor=page[-1].name if more else None
        )

    async def _call(self, context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        work = self._tools.execute(_principal(context), params.name, params.arguments or {})
        try:
            return _answered(await self._refusable(self._with_progress(context, work)))
        except NodeUnreachable as elsewhere:
            return await self._refusable(self._call_elsewhere(context, params, elsewhere))
        except NotFound as error:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}") from error
        except DomainError as error:
            return _refused(error)

    async def _call_elsewhere(
        self, context: _Context, params: types.CallToolRequestParams, elsewhere: NodeUnreachable
    ) -> types.CallToolResult:
        """Execute the tool on the node of the call: by its endpoint for that, with this request's key."""
        lines = dict(_state(context, "headers") or ())
        if self._forwarder is None or b"authorization" not in lines:
            return _refused(elsewhere)
        headers = {
            "Content-Type": "application/json",
            "Authorization": lines[b"authorization"].decode("latin-1"),
        }
        if b"x-request-id" in lines:
            headers["X-Request-Id"] = lines[b"x-request-id"].decode("latin-1")
        path = f"/integrations/v1/tools/{params.name}/execute"
        body = json.dumps({"arguments": params.arguments or {}}).encode()
        try:
            status, answer = await self._forwarder.ask_whole(elsewhere, "POST", path, headers, body)
        except DomainError as error:
            return _refused(error)
        told = json.loads(answer)
        if status >= 400:
            return _refusal(told["error"], told["error"]["message"])
        return _answered(ToolResult(told["data"]["result"], told["data"]["duration_ms"]))

    async def _with_progress(self, context: _Context, work: Coroutine[Any, Any, ToolResult]) -> ToolResult:
        """Wait for a tool; report progress every second to a client that asked for it."""
        if not context.meta or "progress_token" not in context.meta:
            return await work
        task = self._keep(work)
        try:
            for passed in itertools.count(1):
                done, _ = await asyncio.wait({task}, timeout=_PROGRESS_EVERY_S)
                if done:
                    return task.result()
                await context.session.report_progress(passed * _PROGRESS_EVERY_S, message="at work")
        finally:
            task.cancel()
        raise AssertionError("it counts without end")

    async def _refusable(self, work: Coroutine[Any, Any, _ResultT]) -> _ResultT:
        """Log an unexpected exception, and hide its details from the client."""
        try:
            return await work
        except (DomainError, MCPError):
            raise
        except Exception as error:
            # The caller gets a response for every failure of a tool, as at any other endpoint.
            _log.exception("a tool failed unexpectedly")
            message = "Unexpected server error; report the X-Request-Id if it persists."
            raise MCPError(types.INTERNAL_ERROR, message) from error

    async def _ready(self, context: _Context, _: types.NotificationParams) -> None:
        session = _state(context, _SESSION)
        if isinstance(session, Session):
            session.tell = context.session.send_tool_list_changed

    async def _listen(
        self, context: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        account_sid = _principal(context).account_sid
        listeners = self._listeners.setdefault(account_sid, _Listeners())
        listeners.streams += 1
        try:
            return await listeners.handler(context, params)
        finally:
            listeners.streams -= 1
            if not listeners.streams:
                del self._listeners[account_sid]

    def _keep(self, work: Coroutine[Any, Any, _ResultT]) -> asyncio.Task[_ResultT]:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._let_go)
        return task

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        self._work.discard(task)
        if not task.cancelled():
            # A waiting caller has got the exception; a disconnected client needs none.
            task.exception()


def _state(context: _Context, name: str) -> Any:
    """Value in the scope of the request under a key of `Engine.state`."""
    return None if context.request is None else context.request.scope[name]


def _principal(context: _Context) -> Principal:
    principal = _state(context, _PRINCIPAL)
    assert isinstance(principal, Principal)
    return principal


async def _told(session: Session) -> None:
    """Notify one client; one whose stream is full or closed sees the change when it lists tools again."""
    assert session.tell is not None
    try:
        async with asyncio.timeout(_TELL_TIMEOUT_S):
            await session.tell()
    except (TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        _log.debug("a client could not be notified of changed tools")


def _page(tools: list[Tool]) -> list[Tool]:
    """Return the first tools that fit into a response, at least one."""
    chars = 0
    for count, tool in enumerate(tools):
        schemas = (tool.input_schema, tool.output_schema)
        chars += len(tool.description) + sum(len(json.dumps(schema)) for schema in schemas)
        if count and chars > MAX_PAGE_CHARS:
            return tools[:count]
    return tools


def _shown(tool: Tool) -> types.Tool:
    """Convert a tool to the protocol's type."""
    hints = tool.annotations
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema=dict(tool.output_schema) if tool.output_schema is not None else None,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
            open_world_hint=hints.open_world,
        ),
    )


def _answered(result: ToolResult) -> types.CallToolResult:
    structured = dict(result.structured) if result.structured is not None else None
    return types.CallToolResult(content=[types.TextContent(text=result.text)], structured_content=structured)


def _refused(error: DomainError) -> types.CallToolResult:
    """Convert a domain error to a result, so that the model can read it and correct its arguments."""
    text = error.message
    if isinstance(error, ValidationFailed):
        text = describe(error.errors)
    told = {
        "code": error.code,
        "message": error.message,
        **({"details": error.details} if error.details else {}),
    }
    return _refusal(told, text)


def _refusal(told: Mapping[str, Any], text: str) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=f"{told['code']}: {text}")],
        structured_content={"error": dict(told)},
        is_error=True,
    )
