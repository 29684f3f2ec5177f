"""HTTP application; its routes are built from the endpoint declarations."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from api.http.body import MAX_BODY_BYTES, SERVER_OPTIONS
from api.http.cors import Cors
from api.http.endpoint import Endpoint, Identifiers, PublicEndpoint, path_parameters
from api.http.errors import ErrorStyle
from api.http.middleware import edge
from api.http.pipeline import Pipeline
from api.http.ratelimit import RateLimiter
from api.mcp.gateway import McpGateway
from api.process.lifecycle import Lifecycle
from api.process.metrics import Metrics
from api.process.values import IpNetwork
from api.routes import ENDPOINTS
from api.routes.reference import ReferenceRoutes
from api.routes.service import ServiceRoutes
from callcontrol.bootstrap.aio.services import Services
from callcontrol.models import Service

if TYPE_CHECKING:
    from api.http.forward import Forwarder

__all__ = ["REQUESTS_PER_MINUTE", "Neighbours", "create_app"]

REQUESTS_PER_MINUTE: Mapping[Service, int] = {
    "platform": 600,
    "messaging": 600,
    "assistant": 100,
    "tools": 600,
    "admin": 600,
    "all": 600,
}
"""Default requests per minute of a key, by its service, where the account has no limit of its own."""

_NUMBER = "{number}"

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """
    Networks that are not rate-limited, origins whose pages may read responses, and other nodes.

    Without a `forwarder` there are none.
    """

    trusted: Iterable[IpNetwork] = ()
    origins: Iterable[str] = ()
    forwarder: Forwarder | None = None


NO_NEIGHBOURS: Final = Neighbours()


def create_app(
    services: Services,
    *,
    mcp: McpGateway,
    lifecycle: Lifecycle,
    metrics: Metrics,
    public_url: str,
    neighbours: Neighbours = NO_NEIGHBOURS,
    requests_per_minute: Mapping[Service, int] = REQUESTS_PER_MINUTE,
    check_replies: bool = False,
) -> web.Application:
    """
    Build the application.

    A path answers HEAD where it answers GET, and is the same with a slash at its end. `check_replies`
    validates every response against its declared model; tests use it.
    """
    limiter = RateLimiter(60, monotonic=time.monotonic, wall=time.time)
    pipeline = Pipeline(
        services,
        mcp,
        lifecycle,
        limiter,
        trusts(neighbours.trusted),
        requests_per_minute,
        check_replies,
        neighbours.forwarder,
    )
    outer = edge(metrics, style_finder(), pipeline.admit_unrouted, Cors(neighbours.origins))
    app = web.Application(
        client_max_size=MAX_BODY_BYTES, middlewares=[outer], handler_args=dict(SERVER_OPTIONS)
    )
    service = ServiceRoutes(lifecycle, metrics)
    reference = ReferenceRoutes(ENDPOINTS, service.endpoints, public_url)
    resources: dict[str, web.Resource] = {}
    for method, path, handler in _routed(
        pipeline, (*service.endpoints, *reference.endpoints, reference.files)
    ):
        if path not in resources:
            resources[path] = _Dynamic(path) if "{" in path else _Plain(path)
            app.router.register_resource(resources[path])
        resources[path].add_route(method, handler)
    return app


class _Plain(web.PlainResource):
    """A path without parameters, also with a slash at its end."""

    def _match(self, path: str) -> dict[str, str] | None:
        return super()._match(_without_slash(path))


class _Dynamic(web.DynamicResource):
    """A path with parameters, also with a slash at its end."""

    def _match(self, path: str) -> dict[str, str] | None:
        return super()._match(_without_slash(path))


def _without_slash(path: str) -> str:
    return path[:-1] if path[-1] == "/" else path


def _routed(pipeline: Pipeline, public: Iterable[PublicEndpoint]) -> Iterator[tuple[str, str, _Handler]]:
    """Method, pattern and handler of every route."""
    patterns = _patterns()
    for endpoint in ENDPOINTS:
        handler, path = pipeline.handler(endpoint), patterns[endpoint.path]
        yield endpoint.method, path, handler
        # What another protocol answers to GET is a stream, which has no head of its own: 405.
        if endpoint.method == "GET" and endpoint.spoken is None:
            yield "HEAD", path, handler
    for route in public:
        yield "GET", route.path, route.handler
        yield "HEAD", route.path, route.handler


@cache
def _patterns() -> Mapping[str, str]:
    return patterns_of(endpoint.path for endpoint in ENDPOINTS)


def patterns_of(paths: Iterable[str]) -> dict[str, str]:
    """
    Routing patterns of paths, by path; a parameter does not match literal segments of other paths.

    So a method that ``/calls/outbound`` lacks is not routed to ``/calls/{call_id}``.
    """
    split = {path: path.split("/") for path in paths}
    words: dict[tuple[int, tuple[str, ...]], set[str]] = {}
    for parts in split.values():
        for place, part in enumerate(parts):
            if "{" not in part:
                words.setdefault((len(parts), tuple(parts[:place])), set()).add(part)
    patterns = {}
    for path, parts in split.items():
        segments = list(parts)
        for place, part in enumerate(parts):
            taken = words.get((len(parts), tuple(parts[:place])))
            if taken and part.startswith("{") and part.endswith("}"):
                others = "|".join(sorted(map(re.escape, taken)))
                segments[place] = f"{{{part[1:-1]}:(?!(?:{others})(?:/|$))[^/]+}}"
        patterns[path] = "/".join(segments)
    return patterns


def trusts(networks: Iterable[IpNetwork]) -> Callable[[str | None], bool]:
    """Make a predicate: true for a source address in one of the networks."""
    listed = tuple(networks)

    # Few sources make nearly all requests, and parsing an address takes longer than a cache look-up.
    @lru_cache(maxsize=1024)
    def is_trusted(source: str | None) -> bool:
        if not listed or source is None:
            return False
        try:
            address = ip_address(source.partition("%")[0])
        except ValueError:
            return False
        return any(address.version == network.version and address in network for network in listed)

    return is_trusted


def _kept(part: str, endpoint: Endpoint[Any, Any]) -> str:
    """A segment of an endpoint's path; all integer parameters get the same name."""
    of = path_parameters(part)
    return _NUMBER if of and endpoint.identified_by(of[0]) is Identifiers.INTEGER else part


@cache
def style_finder() -> Callable[[str], ErrorStyle]:
    """
    Make a function that gives the error style for requests without an endpoint: unknown paths or methods.

    The style is that of the endpoints whose paths share the request's prefix, if they agree. A number in the
    request matches an integer parameter.
    """
    styles: dict[tuple[str, ...], set[ErrorStyle]] = {}
    for endpoint in ENDPOINTS:
        parts = [_kept(part, endpoint) for part in endpoint.path.split("/")]
        for length in range(2, len(parts) + 1):
            styles.setdefault(tuple(parts[:length]), set()).add(endpoint.style)
    longest = max(map(len, styles), default=0)

    def style_of(path: str) -> ErrorStyle:
        parts = [_NUMBER if part.isdecimal() else part for part in path.split("/", longest)]
        for length in range(min(len(parts), longest), 1, -1):
            found = styles.get(tuple(parts[:length]))
            if found is not None:
                return next(iter(found)) if len(found) == 1 else ErrorStyle.GENERAL
        return ErrorStyle.GENERAL

    return style_of
