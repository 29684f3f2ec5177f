"""Entry of Model Context Protocol requests: authentication checks and session look-up."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

from api.http.auth import authenticate
from api.mcp.asgi import Bridge
from api.mcp.messages import form_error
from api.mcp.sessions import Session, Sessions
from api.openapi.document import product_version
from api.process.lifecycle import Lifecycle
from callcontrol.accounts.aio.keys import KeyService
from callcontrol.errors import (
    DomainError,
    Forbidden,
    NodeUnreachable,
    RateLimited,
    ServiceUnavailable,
    ValidationFailed,
)
from callcontrol.models import Principal
from callcontrol.nodes.aio import Membership
from callcontrol.tools.aio.service import ToolService

if TYPE_CHECKING:
    from api.http.forward import Forwarder
    from api.mcp.engine import Engine

__all__ = ["McpGateway"]

_log = logging.getLogger("api.mcp")

SESSION_HEADER = "Mcp-Session-Id"
VERSION_HEADER = "MCP-Protocol-Version"
MAX_POSTS_OF_ACCOUNT = 100
_SWEEP_EVERY_S = 30.0
_CLOSE_TIMEOUT_S = 5.0


class McpGateway:
    """
    The protocol's only endpoint.

    The engine is loaded on the first request. `close` waits up to five seconds for requests in progress,
    and ends every session. A session is named by its node behind a dot, where several share a database.

    Attributes:
        sessions: Open sessions.
    """

    def __init__(
        self,
        tools: ToolService,
        keys: KeyService,
        lifecycle: Lifecycle,
        public_url: str,
        *,
        membership: Membership | None = None,
        forwarder: Forwarder | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tools = tools
        self._keys = keys
        self._lifecycle = lifecycle
        self._public_url = public_url
        self._membership = membership
        self._forwarder = forwarder
        self.sessions = Sessions(monotonic)
        self._engine: Engine | None = None
        self._loading = asyncio.Lock()
        self._sweeper: asyncio.Task[None] | None = None
        self._forget: Callable[[], None] | None = None
        self._posts: Counter[str] = Counter()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._closed = False

    async def answer(self, principal: Principal, body: bytes, request: web.Request) -> web.StreamResponse:
        """
        Serve a request of an authenticated key.

        Raises:
            Forbidden: A page of another site sent it.
            ValidationFailed: It must name a session and does not.
            NotFound: The key has no session of this name.
            NodeUnreachable: The session is on another node, which lives.
            RateLimited: The account has its maximum of sessions in use, or of requests in progress.
            ServiceUnavailable: The server has its maximum of sessions in use, or is shutting down.
        """
        _check_origin(request.headers.get("Origin"), self._public_url)
        engine = await self._started()

        async def is_admitted() -> bool:
            try:
                await authenticate(request.headers.getall("Authorization", []), self._keys, "tools")
            except DomainError:
                return False
            return True

        version = request.headers.get(VERSION_HEADER)
        refusal = engine.version_error(version, body)
        if refusal is None and request.method == "POST":
            refusal = form_error(body) or engine.initialize_error(version, body)
        if refusal is not None:
            return web.json_response(refusal, status=HTTPStatus.BAD_REQUEST)
        bridge = Bridge(request, body, is_admitted)
        if not engine.has_sessions(version):
            return await self._run(engine, bridge, principal, None)
        named = request.headers.get(SESSION_HEADER)
        if named is None and request.method == "POST":
            return await self._open(engine, bridge, principal)
        if named is None:
            raise ValidationFailed.of(SESSION_HEADER, "is required: as the answer to initialize has it")
        await self._check_place(named)
        session = self.sessions.find(named, principal)
        if request.method == "DELETE":
            self.sessions.end(named)
        with self.sessions.using(session):
            if request.method == "GET":
                return await self._stream(engine, bridge, principal, session)
            return await self._run(engine, bridge, principal, session)

    async def close(self) -> None:
        """Finish requests in progress, end every session, and refuse later requests. Idempotent."""
        self._closed = True
        if self._forget is not None:
            self._forget()
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._engine is None:
            return
        self._engine.hush()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self._quiet.wait()
        await self._engine.close()

    async def _check_place(self, session_id: str) -> None:
        """
        Check that a session is not on another node; those of a dead one have ended with it.

        Raises:
            NodeUnreachable: It is.
        """
        node = session_id.partition(".")[2]
        if node and self._membership is not None and await self._membership.is_another(node):
            raise NodeUnreachable(node, "The session is open")

    async def _open(self, engine: Engine, bridge: Bridge, principal: Principal) -> web.StreamResponse:
        if not self._lifecycle.takes_calls:
            raise ServiceUnavailable("The server is shutting down and opens no sessions.", retry_after_s=5)
        session, displaced = self.sessions.begin(principal)

        def answered(response: web.StreamResponse) -> None:
            # Register it before the client gets its id, which it may use at once on another connection.
            if response.status < 400:
                self.sessions.opened(session, response.headers[SESSION_HEADER])

        bridge.on_answer = answered
        try:
            if displaced is not None:
                await engine.end(displaced)
            return await self._run(engine, bridge, principal, session)
        finally:
            self.sessions.begun(session)

    async def _stream(
        self, engine: Engine, bridge: Bridge, principal: Principal, session: Session
    ) -> web.StreamResponse:
        """Open the only stream of a session; a stream whose client has disconnected is ended first."""
        if session.stream is not None:
            await session.stream.forsaken()
        if session.stream is not None:
            return await self._run(engine, bridge, principal, session)
        session.stream = bridge
        try:
            return await self._run(engine, bridge, principal, session)
        finally:
            session.stream = None

    async def _run(
        self, engine: Engine, bridge: Bridge, principal: Principal, session: Session | None
    ) -> web.StreamResponse:
        if bridge.method != "POST":
            return await bridge.run(engine.app, engine.state(principal, session))
        account_sid = principal.account_sid
        if self._posts[account_sid] >= MAX_POSTS_OF_ACCOUNT:
            message = f"{MAX_POSTS_OF_ACCOUNT} requests of this account are being answered; wait for one."
            raise RateLimited(message, retry_after_s=1)
        self._posts[account_sid] += 1
        self._quiet.clear()
        try:
            return await bridge.run(engine.app, engine.state(principal, session))
        finally:
            self._posts[account_sid] -= 1
            if not self._posts[account_sid]:
                del self._posts[account_sid]
            if not self._posts:
                self._quiet.set()

    async def _started(self) -> Engine:
        """Return the engine; the first call imports it in a thread, which takes a second."""
        async with self._loading:
            if self._closed:
                raise ServiceUnavailable("The server is shutting down.", retry_after_s=5)
            if self._engine is None:
                make = await asyncio.to_thread(_load)
                node = None if self._membership is None else self._membership.name
                self._engine = make(self._tools, product_version(), node, self._forwarder)
                await self._engine.start()
                self._forget = self._tools.on_change(self._tools_changed)
                self._sweeper = asyncio.create_task(self._sweep(self._engine))
            return self._engine

    def _tools_changed(self, account_sid: str) -> None:
        if self._engine is not None:
            self._engine.tools_changed(account_sid, self.sessions.of_account(account_sid))

    async def _sweep(self, engine: Engine) -> None:
        """End idle sessions periodically."""
        while True:
            await asyncio.sleep(_SWEEP_EVERY_S)
            for name in self.sessions.idle():
                self.sessions.end(name)
                await engine.end(name)


def _load() -> type[Engine]:
    from api.mcp.engine import Engine

    return Engine


def _check_origin(origin: str | None, public_url: str) -> None:
    """
    Refuse requests from pages of another site, which may reach the server by DNS rebinding.

    Raises:
        Forbidden: The request has an Origin that is not the server's.
    """
    own = urlsplit(public_url)
    if origin is not None and origin.lower() != f"{own.scheme}://{own.netloc}".lower():
        raise Forbidden("The Origin of this request is another site; agents send none.")
