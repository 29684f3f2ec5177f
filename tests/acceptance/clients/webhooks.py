"""A web server of a customer: it keeps the requests that it gets, and verifies their signatures."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.acceptance.clients.waiting import PATIENCE_S, appears
from tests.support.ports import free_port

__all__ = ["Received", "Receiver", "assert_signed", "standard_signature"]


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)

    @property
    def event(self) -> str | None:
        """Name of the event, in the body of a POST or the query of a GET."""
        if self.method == "GET":
            return self.query.get("event")
        with suppress(ValueError):
            found = self.json
            return str(found["event"]) if isinstance(found, dict) and "event" in found else None
        return None


Answer = Callable[[Received], Any]


@dataclass
class Receiver:
    """
    Answers every request with 204, or as `answers` has it for its path.

    An answer is a function of the request. It returns a status, or an object that is sent as JSON.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[Received] = field(default_factory=list)
    port: int = field(default_factory=free_port)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    def url(self, path: str = "/") -> str:
        """Address of a path of this receiver."""
        return f"http://127.0.0.1:{self.port}{path}"

    def events(self, path: str | None = None) -> list[str | None]:
        """Names of the events that have come to a path, in their order."""
        return [request.event for request in self.requests if path in (None, request.path)]

    async def event(
        self,
        name: str,
        path: str | None = None,
        where: Callable[[Any], object] | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> Received:
        """Wait for an event, and return its first request; `where` is asked about the body."""

        def look() -> Received | None:
            for request in self.requests:
                if request.event == name and path in (None, request.path):
                    if where is None or where(request.json):
                        return request
            return None

        return await appears(look, f"{name} (there are {self.events(path)})", timeout_s)

    async def request_to(self, path: str) -> Received:
        """Wait for a request to a path, and return the first one."""
        return await appears(
            lambda: next((request for request in self.requests if request.path == path), None),
            f"a request to {path}",
        )

    async def _handle(self, request: web.Request) -> web.Response:
        received = Received(
            request.method, request.path, dict(request.query), request.headers.copy(), await request.read()
        )
        self.requests.append(received)
        answer = self.answers.get(request.path)
        found = 204 if answer is None else answer(received)
        return web.Response(status=found) if isinstance(found, int) else web.json_response(found)


def assert_signed(received: Received, secret: str) -> None:
    """Verify both signatures of a webhook, by the definition of each."""
    wanted = "sha256=" + hmac.new(secret.encode(), received.body, hashlib.sha256).hexdigest()
    given = received.headers["X-Service-Signature"].split()
    assert any(hmac.compare_digest(wanted, signature) for signature in given), (wanted, given)
    assert received.headers["X-Service-Event"]
    assert received.headers["X-Service-Timestamp"].isdigit()
    assert received.headers["X-Service-Delivery"] == received.headers["webhook-id"]
    if secret.startswith("whsec_"):
        signatures = received.headers["webhook-signature"].split()
        assert standard_signature(received, secret) in signatures, signatures


def standard_signature(received: Received, secret: str) -> str:
    """Compute the signature of Standard Webhooks: over id, timestamp and body."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    head = f"{received.headers['webhook-id']}.{received.headers['webhook-timestamp']}."
    return "v1," + base64.b64encode(hmac.digest(key, head.encode() + received.body, "sha256")).decode()
