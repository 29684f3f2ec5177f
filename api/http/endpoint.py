"""
One declaration per endpoint.

An `Endpoint` says everything about a request: method, path, scope, what its body and query look like, what
it answers and how it can be refused. Routing, validation, the OpenAPI document and the tests are all made
from it, so none of them can disagree with another.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar

from aiohttp import web
from pydantic import BaseModel

from api.http.errors import ErrorStyle
from api.schemas.base import NoBody, NoQuery, RequestModel
from api.services import Services
from callcontrol import errors as domain
from callcontrol.models import Principal, Service

__all__ = [
    "Context",
    "Endpoint",
    "FileReply",
    "Handler",
    "Handover",
    "Identifiers",
    "PublicEndpoint",
    "Reply",
    "Spoken",
    "Ticket",
    "path_parameters",
    "path_pattern",
    "style_finder",
]

BodyT = TypeVar("BodyT", bound=RequestModel)
QueryT = TypeVar("QueryT", bound=RequestModel)

_ALWAYS_UUIDS = frozenset({"sid", "delivery_id"})
_NUMBER = "{number}"
_PARAMETER = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Context(Generic[BodyT, QueryT]):
    """An authenticated and validated request, as a handler gets it."""

    services: Services
    principal: Principal
    path: Mapping[str, str]
    query: QueryT
    body: BodyT
    request_id: str
    raw: bytes = b""
    """The body as it came."""

    @property
    def account_sid(self) -> str:
        """The account of the key."""
        return self.principal.account_sid


@dataclass(frozen=True, slots=True)
class Reply:
    """What a handler answers: `data` and additions to `meta`; None is an answer without body."""

    data: Any
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileReply:
    """A file to send as it is."""

    path: Path


@dataclass(frozen=True, slots=True)
class Handover:
    """The request goes on to what speaks a protocol of its own over HTTP, and is answered by that."""

    answer: Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spoken:
    """
    What the document says of an endpoint that hands its requests over.

    `request` is the schema of a JSON body, None where none is read; `answers` have by status a text, and by
    media type the schema of what is in them.
    """

    answers: Mapping[int, tuple[str, Mapping[str, Any]]]
    request: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers it understands, and what they are for."""


class Identifiers(Enum):
    """
    What stands in the path of an endpoint for a resource.

    In any of them `sid` is the account's UUID, and the id of a delivery is one too.
    """

    UUID = "uuid"
    INTEGER = "integer"
    """A number from 1 to 2^63 - 1."""
    NAME = "name"
    """A name of 1 to 64 letters, digits, underscores and hyphens."""


Handler = Callable[[Context[BodyT, QueryT]], Awaitable[Reply | FileReply | Handover]]

Ticket = Callable[[Services, Mapping[str, str], Mapping[str, str]], Awaitable[Principal | None]]
"""From the path and the query, who a request speaks for; None when it brings nothing of the kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Generic[BodyT, QueryT]):
    """
    One method of one path.

    `scope` is what the key must carry, and `service` which service's key it must be; `requests_per_minute` is
    a limit of the endpoint's own, beside that of the key; endpoints with the same `limited_as` share it.
    `response` is the model of ``data`` (of one item of it when `paged`), None for an answer without body or,
    with a `media_type`, for a file. A `keyset` list can be read by cursor too, and says in
    ``meta.next_cursor`` where it goes on. `errors` are the domain errors this endpoint may give beyond those
    every endpoint has. `places_calls` endpoints are refused while the server drains; `idempotent` ones honour
    the header ``Idempotency-Key``. A `ticket` opens the endpoint without a key; a request that brings one is
    judged by it, whatever key it has. Endpoints of the style `TWILIO` are for clients of that interface: they
    take the key by Basic too, a form instead of JSON, and answer ``data`` without an envelope. Those of the
    style `MESSAGING` take the key in ``X-API-Key`` too, and answer ``success``, ``data`` and, when `paged`,
    ``pagination``; a `bare` one's ``data`` is the whole answer, with a ``success`` of its own. One that is
    `spoken` hands its requests over to what speaks a protocol of its own: key, rate, scope, query and the
    limits of a body hold as everywhere, what the body says is for that protocol.
    """

    method: str
    path: str
    handler: Handler[BodyT, QueryT]
    scope: str
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
    service: Service = "platform"
    identifiers: Identifiers = Identifiers.UUID
    bare: bool = False
    requests_per_minute: int | None = None
    limited_as: str | None = None
    ticket: Ticket | None = None
    spoken: Spoken | None = None

    @property
    def limit_name(self) -> str:
        """What its own limit is counted under."""
        return self.limited_as or self.name

    @property
    def name(self) -> str:
        """A name that no other endpoint has: the operationId."""
        return self.handler.__name__

    def identified_by(self, parameter: str) -> Identifiers:
        """What stands for a parameter of its path."""
        return Identifiers.UUID if parameter in _ALWAYS_UUIDS else self.identifiers

    @property
    def for_twilio(self) -> bool:
        """Whether it is spoken as Twilio's interface is."""
        return self.style is ErrorStyle.TWILIO

    @property
    def for_messaging(self) -> bool:
        """Whether it is spoken as the messaging interface is."""
        return self.style is ErrorStyle.MESSAGING

    @property
    def takes_body(self) -> bool:
        """Whether a body with fields may be sent."""
        return self.body is not NoBody

    @property
    def reads_body(self) -> bool:
        """Whether a body is read at all, be it for a protocol of its own."""
        return self.takes_body or (self.spoken is not None and self.spoken.request is not None)

    @property
    def all_errors(self) -> tuple[type[domain.DomainError], ...]:
        """Every domain error that this endpoint may answer."""
        common: list[type[domain.DomainError]] = [
            domain.ValidationFailed,
            domain.Unauthorized,
            domain.Forbidden,
            domain.RateLimited,
            domain.Internal,
            domain.ServiceUnavailable,
        ]
        if path_parameters(self.path):
            common.append(domain.NotFound)
        if self.idempotent:
            common.append(domain.IdempotencyConflict)
        return tuple(dict.fromkeys([*common, *self.errors]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicEndpoint:
    """
    An endpoint without key: health, metrics, documents.

    `parameters` has the values of its path's; `also` are other paths that it is found under.
    """

    path: str
    summary: str
    media_type: str
    handler: Callable[[Any], Awaitable[Any]]
    statuses: Mapping[int, str] = field(default_factory=lambda: {200: "The document."})
    tag: str = "service"
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The operationId."""
        return self.handler.__name__


def path_parameters(path: str) -> list[str]:
    """The names in braces of a path, in order."""
    return _PARAMETER.findall(path)


def path_pattern(path: str) -> re.Pattern[str]:
    """What paths an endpoint's path stands for."""
    return re.compile(_PARAMETER.sub("[^/]+", path))


def _kept(part: str, endpoint: Endpoint[Any, Any]) -> str:
    """A part of an endpoint's path, with any parameter that is a number under one name."""
    of = path_parameters(part)
    return _NUMBER if of and endpoint.identified_by(of[0]) is Identifiers.INTEGER else part


def style_finder(endpoints: Iterable[Endpoint[Any, Any]]) -> Callable[[str], ErrorStyle]:
    """
    Make what says how to refuse requests that no endpoint takes: unknown paths, methods not offered.

    They are spelled as the endpoints are whose paths begin as the request's does, if those agree. A number
    may stand for a parameter that is one.
    """
    styles: dict[tuple[str, ...], set[ErrorStyle]] = {}
    for endpoint in endpoints:
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
