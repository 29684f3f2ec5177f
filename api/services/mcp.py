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
        Answer a request of an authenticated key, in the words of the protocol.

        Raises:
            Forbidden: A page of another site sent it.
            ValidationFailed: It has to name a session and names none.
            NotFound: The session it names is not one of the key.
            RateLimited: The account may open no more sessions.
            ServiceUnavailable: Nor may anybody, or the server ends.
        """
