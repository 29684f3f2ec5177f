"""Requests of pages of other origins (CORS, Fetch standard 3.2)."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

__all__ = ["Cors"]

# Not those of MCP: its endpoint takes no page of another origin.
_REQUEST_HEADERS = (
    "Authorization, Content-Type, Idempotency-Key, If-Modified-Since, If-None-Match, If-Range, "
    "Range, X-API-Key, X-Request-Id"
)
_RESPONSE_HEADERS = (
    "Content-Disposition, Content-Range, ETag, Idempotent-Replayed, Location, RateLimit, "
    "RateLimit-Policy, Retry-After, WWW-Authenticate, X-RateLimit-Limit, X-RateLimit-Remaining, "
    "X-RateLimit-Reset, X-Request-Id"
)
_MAX_AGE_S = 600


class Cors:
    """
    Origins whose pages may read responses; ``*`` stands for all, and no origin for none.

    Credentials of the browser are never allowed: a page sends its key in a header, as every client does.
    """

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origins)

    def headers(self, origin: str | None) -> dict[str, str]:
        """Headers of every response to a request that names this origin; None for one that names none."""
        if not self._origins:
            return {}
        readable = {"Access-Control-Expose-Headers": _RESPONSE_HEADERS}
        if "*" in self._origins:
            return {"Access-Control-Allow-Origin": "*", **readable}
        # Also for other origins: a cache must not keep their response for one that is allowed.
        varies = {"Vary": "Origin"}
        if origin is None or origin.lower() not in self._origins:
            return varies
        return {"Access-Control-Allow-Origin": origin, **readable, **varies}

    def preflight(self, request: web.Request) -> web.Response | None:
        """Response to the preflight of an allowed origin at a known path; None for any other request."""
        if request.method != "OPTIONS" or "Access-Control-Request-Method" not in request.headers:
            return None
        allowed = self.headers(request.headers.get("Origin"))
        # No path has OPTIONS, so the router refuses it and names the methods that the path has.
        refusal = request.match_info.http_exception
        if "Access-Control-Allow-Origin" not in allowed or not isinstance(refusal, web.HTTPMethodNotAllowed):
            return None
        methods = ", ".join(sorted(refusal.allowed_methods))
        return web.Response(
            status=204,
            headers={
                "Access-Control-Allow-Methods": methods,
                "Access-Control-Allow-Headers": _REQUEST_HEADERS,
                "Access-Control-Max-Age": str(_MAX_AGE_S),
            },
        )
