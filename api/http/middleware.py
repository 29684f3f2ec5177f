"""Middleware of every request: request id, error envelope, common headers, one log line, one measurement."""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from aiohttp import web
from aiohttp.typedefs import Middleware

from api.http.body import too_large
from api.http.cors import Cors
from api.http.errors import ApiError, ErrorStyle, to_api_error, unexpected
from api.process.metrics import Metrics
from callcontrol.errors import ValidationFailed

__all__ = ["RequestContext", "current_request", "edge"]

_log = logging.getLogger("api.access")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
# The one part of messaging outside its base path.
_MISPLACED = {"/api/v1/webhook-endpoints": "/api/webhook-endpoints"}
_PROBES = frozenset({"/health", "/ready", "/metrics"})

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


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


def current_request() -> RequestContext:
    """Return the context of this task's request."""
    return _current.get()


def edge(
    metrics: Metrics,
    style_of: Callable[[str], ErrorStyle],
    admit_unrouted: Callable[[web.Request], Awaitable[None]],
    cors: Cors,
) -> Middleware:
    """
    Make the application's only middleware; every response goes through it.

    `style_of` gives the error style of a path without an endpoint. `admit_unrouted` is called with a request
    that no endpoint answers, and raises an `ApiError` when it may not even learn that.
    """

    @web.middleware
    async def surround(request: web.Request, handler: _Handler) -> web.StreamResponse:
        started_s = time.perf_counter()
        context = RequestContext(_request_id(request))
        # A later request on the same connection replaces it.
        _current.set(context)
        context.headers.update(cors.headers(request.headers.get("Origin")))
        response: web.StreamResponse | None = cors.preflight(request)
        if response is None:
            response = await _guard(request, handler, context, style_of, admit_unrouted)
        context.mark(response)
        took_s = time.perf_counter() - started_s
        metrics.observe_request(request.method, _route(request), response.status, took_s)
        _tell(request, response, context, took_s)
        return response

    return surround


async def _guard(
    request: web.Request,
    handler: _Handler,
    context: RequestContext,
    style_of: Callable[[str], ErrorStyle],
    admit_unrouted: Callable[[web.Request], Awaitable[None]],
) -> web.StreamResponse:
    """Run the handler; every failure becomes a response in the error envelope."""
    try:
        _check_encoding(request.raw_path)
        if request.match_info.http_exception is not None:
            await admit_unrouted(request)
        return await handler(request)
    except ValidationFailed as error:
        return _refusal(to_api_error(error, style_of(request.path)), context)
    except ApiError as error:
        return _refusal(error, context)
    except web.HTTPException as error:
        refusal = _from_aiohttp(request, error)
        refusal.style = style_of(_elsewhere(request.path) or request.path)
        return _refusal(refusal, context)
    except Exception as error:
        # The client of every endpoint gets the documented 500, never a traceback.
        return _refusal(unexpected(error), context)


def _check_encoding(target: str) -> None:
    """
    Refuse a path or a query that is not UTF-8, which would reach the handler as other text than was meant.

    Raises:
        ValidationFailed: It names the part.
    """
    if "%" not in target and target.isascii():
        return
    path, _, query = target.partition("?")
    if not _is_utf8(path):
        raise ValidationFailed.of("path", "must be UTF-8")
    for pair in query.split("&"):
        if not _is_utf8(pair):
            name = pair.partition("=")[0]
            raise ValidationFailed.of(name if name.isalnum() and name.isascii() else "query", "must be UTF-8")


def _is_utf8(text: str) -> bool:
    try:
        # The library has read bytes outside ASCII as surrogates if they were not UTF-8.
        unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode()
    except UnicodeDecodeError:
        return False
    return True


def _refusal(error: ApiError, context: RequestContext) -> web.Response:
    if error.status >= 500 and error.__cause__ is not None and error.code.lower() == "internal_error":
        _log.error(
            "request %s failed",
            context.request_id,
            exc_info=error.__cause__,
            extra={"call_sid": context.call_sid},
        )
    body = json.dumps(error.body(), separators=(",", ":"), ensure_ascii=False)
    return web.Response(
        text=body, status=error.status, headers=error.headers, content_type="application/json"
    )


def _from_aiohttp(request: web.Request, error: web.HTTPException) -> ApiError:
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        message = f"{request.method} is not offered here; use {allowed}."
        return ApiError(405, "METHOD_NOT_ALLOWED", message, headers={"Allow": allowed})
    if isinstance(error, web.HTTPNotFound):
        where = _elsewhere(request.path)
        hint = "see /docs." if where is None else f"did you mean {where}?"
        return ApiError(404, "NOT_FOUND", f"There is nothing at this path; {hint}")
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return too_large()
    if isinstance(error, web.HTTPExpectationFailed):
        return ApiError(417, "EXPECTATION_FAILED", "Only Expect: 100-continue is understood.")
    if error.status >= 500:
        return unexpected(error)
    return ApiError(error.status, "BAD_REQUEST", error.reason)


def _elsewhere(path: str) -> str | None:
    """The path that stands where this one is looked for."""
    found = (right for wrong, right in _MISPLACED.items() if f"{path}/".startswith(f"{wrong}/"))
    return next(found, None)


def _request_id(request: web.Request) -> str:
    """The client's own id if it is safe in a header and a log, else a new one."""
    given = request.headers.get("X-Request-Id", "")
    return given if _REQUEST_ID.fullmatch(given) else str(uuid.uuid4())


def _route(request: web.Request) -> str:
    """The declared path, so that the number of values is bounded."""
    resource = request.match_info.route.resource
    return resource.canonical.rstrip("/") or "/" if resource is not None else "unmatched"


def _tell(request: web.Request, response: web.StreamResponse, context: RequestContext, took_s: float) -> None:
    """Log one line, without the query, which may hold phone numbers."""
    # Probes and scrapes come every few seconds and are not informative.
    level = logging.DEBUG if request.path in _PROBES and response.status < 500 else logging.INFO
    _log.log(
        level,
        "%s %s %d in %.1f ms",
        request.method,
        request.path[:200],
        response.status,
        took_s * 1000,
        extra={
            "request_id": context.request_id,
            "account_sid": context.account_sid,
            "call_sid": context.call_sid,
        },
    )
