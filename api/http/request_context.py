"""Context of the request that the current task is handling."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

from aiohttp import web

__all__ = ["RequestContext", "begin_request", "current_request"]


@dataclass(slots=True)
class RequestContext:
    """One request and its response: fields for the log, and headers for the response."""

    request_id: str
    account_sid: str | None = None
    call_sid: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def mark(self, response: web.StreamResponse) -> None:
        """Add the common headers to a response; call before it is sent."""
        response.headers["X-Request-Id"] = self.request_id
        response.headers["X-Content-Type-Options"] = "nosniff"
        # Hides the versions of the interpreter and the libraries.
        response.headers["Server"] = "Trunkline"
        response.headers.setdefault("Cache-Control", "no-store")
        for name, value in self.headers.items():
            response.headers.setdefault(name, value)


_current: ContextVar[RequestContext] = ContextVar("request_context")


def begin_request(request_id: str) -> RequestContext:
    """Start the context of this task's request; a later request on the same connection replaces it."""
    context = RequestContext(request_id)
    _current.set(context)
    return context


def current_request() -> RequestContext:
    """Return the context of this task's request."""
    return _current.get()
