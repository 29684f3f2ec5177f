"""The Model Context Protocol, as its endpoint uses it."""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from callcontrol.models import Principal

__all__ = ["Mcp"]


class Mcp(Protocol):
    """See ``api.mcp.gateway.McpGateway``."""

    async def answer(self, principal: Principal, body: bytes, request: web.Request) -> web.StreamResponse:
        """
        Serve a request of an authenticated key.

        Raises:
            Forbidden: A page of another site sent it.
            ValidationFailed: It must name a session and does not.
            NotFound: The key has no session of this name.
            RateLimited: The account has its maximum of sessions in use, or of requests in progress.
            ServiceUnavailable: The server has its maximum of sessions in use, or is shutting down.
        """
