"""
Endpoint declarations, one per method and path.

An `Endpoint` declares everything about a request: method, path, scope, schemas of body and query, response
and possible errors. Routing, validation, the OpenAPI document and the tests are all derived from it, so
they cannot disagree.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, get_args, get_type_hints

from aiohttp import web
from pydantic import BaseModel

from api.http.body import FORM, JSON, TextForm
from api.http.errors import ErrorStyle
from api.schemas.base import NoBody, NoQuery, RequestModel
from callcontrol import errors as domain
from callcontrol.bootstrap.aio.services import Services, Storage
from callcontrol.models import Principal, Service

if TYPE_CHECKING:
    from api.mcp.gateway import McpGateway

__all__ = [
    "Context",
    "Endpoint",
    "FileReply",
    "Handler",
    "Handover",
    "Identifiers",
    "PublicEndpoint",
    "Declaration",
    "Reply",
    "Routes",
    "Spoken",
    "Ticket",
    "Token",
    "path_parameters",
]

BodyT = TypeVar("BodyT", bound=RequestModel)
QueryT = TypeVar("QueryT", bound=RequestModel)

_ALWAYS_UUIDS = frozenset({"sid", "delivery_id"})
_PARAMETER = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Context(Generic[BodyT, QueryT]):
    """An authenticated and validated request, as passed to a handler."""

    services: Services
    mcp: McpGateway
    principal: Principal
    account_sid: str
    """The account of the key."""
    path: Mapping[str, str]
    query: QueryT
    body: BodyT
    request_id: str
    raw: bytes = b""
    """Raw body as received."""

    @property
    def storage(self) -> Storage:
        """Services on the database."""
        return self.services.storage

    def number(self, parameter: str = "id") -> int:
        """Value of an integer parameter of the path."""
        return int(self.path[parameter])


@dataclass(frozen=True, slots=True)
class Reply:
    """Response of a handler: `data` and additions to `meta`; a `data` of None sends no body."""

    data: Any
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileReply:
    """Response of a file, sent unchanged."""

    path: Path


@dataclass(frozen=True, slots=True)
class Handover:
    """Passes the request to what writes the response itself, as a handler of another protocol does."""

    answer: Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spoken:
    """
    OpenAPI description of an endpoint that passes its requests to another protocol.

    `request` is the schema of a JSON body, None where none is read; `answers` maps each status to a text and,
    by media type, the schema of the response.
    """

    answers: Mapping[int, tuple[str, Mapping[str, Any]]]
    request: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Request headers that it reads, with their descriptions."""


class Identifiers(Enum):
    """
    Kind of identifier that names a resource in a path.

    In every path, `sid` (the account) and the id of a delivery are UUIDs.
    """

    UUID = "uuid"
    INTEGER = "integer"
    """A number from 1 to 2^63 - 1."""
    NAME = "name"
    """A name of 1 to 64 letters, digits, underscores and hyphens."""


Handler = Callable[[Context[BodyT, QueryT]], Awaitable[Reply | FileReply | Handover]]

Ticket = Callable[[Services, Mapping[str, str], Mapping[str, str]], Awaitable[Principal | None]]
"""Finds the principal of a request by its path and query; None when they carry no ticket."""

Token = Callable[[Services, str], Awaitable[Principal | None]]
"""Finds the principal of a bearer's text that is no API key; None when it is no token either."""


@dataclass(frozen=True, kw_only=True)
class Endpoint(Generic[BodyT, QueryT]):
    """
    One method of one path.

    `scope` is the scope that the key must have, None for none; `service` is the service that it must belong
    to, `all` for any. `requests_per_minute` is a limit of the endpoint in addition to that of the key;
    endpoints with the same `limited_as` share it. `response` is the model of ``data`` (of one item when
    `paged`), None for a response without body or, with a `media_type`, for a file. A `keyset` list can also
    be read by cursor, and returns the next one in ``meta.next_cursor``. `errors` are the domain errors of
    this endpoint beyond those common to all. `places_calls` endpoints are refused while the server drains;
    `idempotent` ones honour the header ``Idempotency-Key``, and a `confidential` response is kept for it
    encrypted, and repeated to the same key alone. A `ticket` authenticates a request without a key; a request
    with a ticket is judged by the ticket alone, even when it has a key. A `token` may stand in place of the
    key, and with `sessions` a session of the console may. With a `text` the body may also be a text. An
    `owned` request may concern what one node alone has, which then answers it. Endpoints of the style
    `TWILIO` also accept the key by Basic authentication and the body as a form, and answer ``data`` without
    an envelope, as those of the style `JAMBONZ` do.
    Those of the style `MESSAGING` also accept the key in ``X-API-Key``, and answer ``success``, ``data`` and,
    when `paged`, ``pagination``; the ``data`` of a `bare` one is the whole response and includes
    ``success``. A `spoken` one passes its requests to another protocol: key, rate, scope, query and body
    limits are checked as everywhere, the content of the body is left to that protocol.
    """

    method: str
    path: str
    handler: Handler[BodyT, QueryT]
    scope: str | None
    summary: str
    tag: str
    response: type[BaseModel] | None
    description: str = ""
    success: int = 200
    body: type[BodyT] = NoBody  # type: ignore[assignment]
    query: type[QueryT] = NoQuery  # type: ignore[assignment]
    errors: tuple[type[domain.DomainError], ...] = ()
    style: ErrorStyle = ErrorStyle.GENERAL
    paged: bool = False
    keyset: bool = False
    media_type: str | None = None
    places_calls: bool = False
    idempotent: bool = False
    confidential: bool = False
    service: Service = "platform"
    identifiers: Identifiers = Identifiers.UUID
    bare: bool = False
    requests_per_minute: int | None = None
    limited_as: str | None = None
    ticket: Ticket | None = None
    token: Token | None = None
    sessions: bool = False
    spoken: Spoken | None = None
    text: TextForm | None = None
    owned: bool = False

    @cached_property
    def limit_name(self) -> str:
        """Name under which the endpoint's own rate limit is counted."""
        return self.limited_as or self.name

    @cached_property
    def name(self) -> str:
        """Unique name: the operationId."""
        return self.handler.__name__

    @cached_property
    def parameters(self) -> list[str]:
        """Names of the path's parameters, in order."""
        return path_parameters(self.path)

    def identified_by(self, parameter: str) -> Identifiers:
        """Kind of identifier of a path parameter."""
        return Identifiers.UUID if parameter in _ALWAYS_UUIDS else self.identifiers

    @cached_property
    def takes_body(self) -> bool:
        """True if the body has declared fields."""
        return self.body is not NoBody

    @cached_property
    def reads_body(self) -> bool:
        """True if a body is read, including one for another protocol."""
        return self.takes_body or (self.spoken is not None and self.spoken.request is not None)

    @cached_property
    def needs_body(self) -> bool:
        """True if a request without a body is refused; one that changes nothing would be a mistake."""
        required = any(declared.is_required() for declared in self.body.model_fields.values())
        return self.reads_body and (required or self.spoken is not None or self.method != "POST")

    @cached_property
    def media_types(self) -> tuple[str, ...]:
        """
        Types that the body may have; where none is read, those of an empty object or form.

        None where another protocol reads none: any body is ignored.
        """
        if self.spoken is not None and not self.reads_body:
            return ()
        if self.text is not None:
            return (JSON, self.text.media_type)
        return (JSON, FORM) if self.style is ErrorStyle.TWILIO else (JSON,)

    @cached_property
    def is_owned(self) -> bool:
        """True if another node may have to answer: it has the active call, or what is `owned`."""
        return self.owned or domain.CallEnded in self.errors

    @cached_property
    def all_errors(self) -> tuple[type[domain.DomainError], ...]:
        """Every domain error that this endpoint may return."""
        common: list[type[domain.DomainError]] = [
            domain.ValidationFailed,
            domain.Unauthorized,
            domain.Forbidden,
            domain.RateLimited,
            domain.Internal,
            domain.ServiceUnavailable,
        ]
        if self.parameters:
            common.append(domain.NotFound)
        if self.idempotent:
            common.append(domain.IdempotencyConflict)
        if self.is_owned:
            common.append(domain.NodeUnreachable)
        if self.is_owned and self.method == "POST":
            common.append(domain.OutcomeUnknown)
        return tuple(dict.fromkeys([*common, *self.errors]))


@dataclass(frozen=True, slots=True)
class PublicEndpoint:
    """
    An endpoint that needs no key: health, metrics, documents.

    `parameters` lists the values of its path parameters.
    """

    path: str
    summary: str
    handler: Callable[[Any], Awaitable[Any]]
    media_type: str = "application/json"
    statuses: Mapping[int, str] = field(default_factory=lambda: {200: "The document."})
    tag: str = "service"
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The operationId."""
        return self.handler.__name__


def path_parameters(path: str) -> list[str]:
    """Names of the path's parameters, in order."""
    return _PARAMETER.findall(path)


class Declaration(TypedDict, total=False):
    """Fields of an `Endpoint` that are declared at its handler, or are common to several."""

    scope: str | None
    summary: str
    description: str
    tag: str
    response: type[BaseModel] | None
    success: int
    body: type[RequestModel]
    query: type[RequestModel]
    errors: tuple[type[domain.DomainError], ...]
    style: ErrorStyle
    paged: bool
    keyset: bool
    media_type: str
    places_calls: bool
    idempotent: bool
    confidential: bool
    service: Service
    identifiers: Identifiers
    bare: bool
    requests_per_minute: int
    limited_as: str
    ticket: Ticket
    token: Token
    sessions: bool
    spoken: Spoken
    text: TextForm
    owned: bool


_HandlerT = TypeVar("_HandlerT", bound=Callable[..., Awaitable[Any]])


class Routes:
    """
    Endpoints of a module, declared at their handlers.

    The docstring of a handler is the summary and the description of its endpoint, and the annotation of its
    context names the models of body and query. The scope is `reads` for GET and `writes` for other methods.
    An endpoint without a response body answers 204.

    Attributes:
        endpoints: The endpoints, in the order of their declaration.
        common: Fields of all endpoints.
    """

    def __init__(self, reads: str, writes: str | None = None, **common: Unpack[Declaration]) -> None:
        self.endpoints: list[Endpoint[Any, Any]] = []
        self._reads, self._writes = reads, writes or reads
        self.common: dict[str, Any] = {**common}

    def get(self, path: str, **declared: Unpack[Declaration]) -> Callable[[_HandlerT], _HandlerT]:
        """Declare the decorated handler as GET of a path."""
        return self._declare("GET", path, declared)

    def post(self, path: str, **declared: Unpack[Declaration]) -> Callable[[_HandlerT], _HandlerT]:
        """Declare the decorated handler as POST of a path."""
        return self._declare("POST", path, declared)

    def put(self, path: str, **declared: Unpack[Declaration]) -> Callable[[_HandlerT], _HandlerT]:
        """Declare the decorated handler as PUT of a path."""
        return self._declare("PUT", path, declared)

    def patch(self, path: str, **declared: Unpack[Declaration]) -> Callable[[_HandlerT], _HandlerT]:
        """Declare the decorated handler as PATCH of a path."""
        return self._declare("PATCH", path, declared)

    def delete(self, path: str, **declared: Unpack[Declaration]) -> Callable[[_HandlerT], _HandlerT]:
        """Declare the decorated handler as DELETE of a path."""
        return self._declare("DELETE", path, declared)

    def _declare(self, method: str, path: str, declared: Declaration) -> Callable[[_HandlerT], _HandlerT]:
        def declare(handler: _HandlerT) -> _HandlerT:
            summary, _, description = (handler.__doc__ or "").strip().partition("\n\n")
            body, query = get_args(get_type_hints(handler)["context"])
            read: dict[str, Any] = {
                "summary": summary.removesuffix("."),
                "description": " ".join(description.split()),
                "body": body,
                "query": query,
            }
            self.add(method, path, handler, **read, **declared)
            return handler

        return declare

    def add(
        self, method: str, path: str, handler: Handler[Any, Any], **declared: Unpack[Declaration]
    ) -> None:
        """Declare an endpoint whose handler is made at run time, without reading its docstring."""
        fields: dict[str, Any] = {
            "scope": self._reads if method == "GET" else self._writes,
            "response": None,
            **self.common,
            **declared,
        }
        if fields["response"] is None and not fields.keys() & {"media_type", "spoken"}:
            fields.setdefault("success", 204)
        self.endpoints.append(Endpoint(method=method, path=path, handler=handler, **fields))
