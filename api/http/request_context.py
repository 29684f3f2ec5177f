"""What the parts of the edge know of the request that their task is answering."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

from aiohttp import web

__all__ = ["Exchange", "begin_exchange", "current_exchange"]


@dataclass(slots=True)
class Exchange:
    """One request and its answer: for the log, and headers that the answer must carry."""

    request_id: str
    account_sid: str | None = None
    call_sid: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def mark(self, response: web.StreamResponse) -> None:
        """Give an answer the headers that all of them have; before any of it is sent."""
        response.headers["X-Request-Id"] = self.request_id
        response.headers["X-Content-Type-Options"] = "nosniff"
        # In place of the versions of the interpreter and of the libraries.
        response.headers["Server"] = "Trunkline"
        response.headers.setdefault("Cache-Control", "no-store")
        for name, value in self.headers.items():
            response.headers.setdefault(name, value)


_current: ContextVar[Exchange] = ContextVar("exchange")


def begin_exchange(request_id: str) -> Exchange:
    """Begin the exchange of this task; a later request of the same connection replaces it."""
    exchange = Exchange(request_id)
    _current.set(exchange)
    return exchange


def current_exchange() -> Exchange:
    """The exchange that this task is answering."""
    return _current.get()
