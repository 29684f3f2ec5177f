"""
Operations of the API, as pages call them.

A page that shows or changes what the API has does it by the handlers of the API's endpoints, with the key
of the session: the same scopes, checks of every field and words of refusal. No request is sent.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast, get_args, get_origin

from aiohttp import web
from pydantic import BaseModel
from pydantic_core import to_json

from api.console.rendering import refusal_text
from api.console.visit import Visit
from api.http.endpoint import Context, Endpoint, Handover, Reply
from api.http.middleware import current_request
from api.routes import ENDPOINTS
from api.schemas.base import RequestModel, field_names, validate_body, validate_query
from callcontrol.accounts.keys import opens
from callcontrol.errors import (
    BindFailed,
    DomainError,
    Forbidden,
    NotFound,
    ServiceUnavailable,
    ValidationFailed,
)

if TYPE_CHECKING:
    from api.mcp.gateway import McpGateway

__all__ = ["Listed", "ask", "ask_list", "change", "may_ask", "refused", "typed"]

PER_PAGE: Final = 50

_SIZES: Final[Sequence[str]] = ("per_page", "page_size", "pageSize")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])[A-Z]")
_WORDS: Final = re.compile(r"[\s,;]+")
_TOP: Final = re.compile(r"[.\[]")
_IDENTIFIER: Final = re.compile(r"[0-9a-fA-F-]{36}|[0-9]{1,18}|[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Listed:
    """
    A page of a list, as the API answers it, and the addresses of its neighbours.

    `total` is None for a list that is not paged.
    """

    items: list[dict[str, Any]]
    total: int | None = None
    newest: str | None = None
    older: str | None = None
    refusal: str | None = field(default=None)
    """The reason why there is nothing to show, where the key may not see the list."""


def may_ask(visit: Visit, operation: str) -> bool:
    """True if the session's key may do an operation, by its name."""
    endpoint = _endpoints()[operation]
    return visit.may(endpoint.scope, endpoint.service)


async def ask(
    visit: Visit,
    operation: str,
    path: Mapping[str, str] | None = None,
    *,
    query: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
) -> Any:
    """
    Do an operation of the API, and return its ``data`` as JSON has it; None if it has none.

    Args:
        visit: The request, whose key and account are those of the operation.
        operation: Name of the operation in the OpenAPI document.
        path: Identifiers in its path.
        query: Parameters; empty ones are left out.
        form: Fields of a form for the body, as text; empty ones, and those that the body has not, are left
            out.
        body: Fields for the body, in the form that the API takes.

    Raises:
        DomainError: As the API refuses it.
    """
    given = {**typed(_endpoints()[operation].body, form or {}), **(body or {})}
    return (await _answer(visit, operation, path, query, given))[0]


async def ask_list(
    visit: Visit,
    operation: str,
    path: Mapping[str, str] | None = None,
    *,
    query: Mapping[str, str] | None = None,
) -> Listed:
    """
    Read the page of a list that the query of the request names; a list that the key may not see is empty.

    Raises:
        DomainError: As the API refuses it, but for the lack of a scope.
    """
    if not may_ask(visit, operation):
        scope = _endpoints()[operation].scope
        return Listed([], refusal=refusal_text("list_scope", scope=scope))
    names = field_names(cast("type[RequestModel]", _endpoints()[operation].query))
    number = visit.query("page")
    paged: dict[str, str] = {name: str(PER_PAGE) for name in _SIZES if name in names}
    if number.isascii() and number.isdecimal() and paged:
        paged["page"] = number
    data, meta = await _answer(visit, operation, path, {**paged, **(query or {})}, {})
    if "page" not in meta or meta["page"] is None:
        return Listed(data)
    kept = {name: value for name, value in visit.request.query.items() if name not in ("page", "done")}
    here, last = int(meta["page"]), int(meta["total_pages"])
    return Listed(
        data,
        meta["total"],
        visit.address(None, **kept) if here > 1 else None,
        visit.address(None, **kept, page=here + 1) if here < last else None,
    )


async def change(
    visit: Visit,
    operation: str,
    path: Mapping[str, str] | None = None,
    *,
    again: Callable[[Visit, DomainError], Awaitable[web.StreamResponse]],
    to: str,
    done: str,
    **given: Any,
) -> web.StreamResponse:
    """
    Do an operation for a form, as ``ask`` does, and go to the page `to`, which says that it is done.

    If it is refused, `again` shows the page of the form again, with the reason. `done` names the text of the
    next page, see ``Visit.go``.
    """
    try:
        await ask(visit, operation, path, **given)
    except DomainError as refusal:
        return await again(visit, refusal)
    visit.go(to, done=done)


def refused(visit: Visit, template: str, error: DomainError, **values: Any) -> web.Response:
    """Show a page again with a form that was refused; messages are by the outermost field."""
    listed = error.errors if isinstance(error, (ValidationFailed, BindFailed)) else ()
    by_field: dict[str, str] = {}
    for item in listed:
        outer = _TOP.split(item.field)[0]
        top = _snake(outer)
        text = item.message if item.field == outer else f"{item.field}: {item.message}"
        by_field[top] = f"{by_field[top]}; {text}" if top in by_field else text
    status = visit.console.status_of(error)
    return visit.show(template, status=status, problem=error.message, errors=by_field, **values)


async def _answer(
    visit: Visit,
    operation: str,
    path: Mapping[str, str] | None,
    query: Mapping[str, str] | None,
    body: Mapping[str, Any],
) -> tuple[Any, Mapping[str, Any]]:
    endpoint = _endpoints()[operation]
    if not opens(visit.principal.service, endpoint.service):
        raise Forbidden(refusal_text("other_service", service=visit.principal.service))
    if not visit.may(endpoint.scope, endpoint.service):
        raise Forbidden(refusal_text("scope", scope=endpoint.scope))
    if endpoint.places_calls and not visit.console.lifecycle.takes_calls:
        raise ServiceUnavailable(refusal_text("takes_no_calls"))
    identifiers = dict(path or {})
    if not all(_IDENTIFIER.fullmatch(value) for value in identifiers.values()):
        raise NotFound(refusal_text("no_such_thing"))
    given = [(name, value) for name, value in (query or {}).items() if value]
    context = Context(
        services=visit.services,
        # No page speaks the protocol of tools, which is all that this is for.
        mcp=cast("McpGateway", None),
        principal=visit.principal,
        account_sid=visit.account_sid,
        path=identifiers,
        query=validate_query(endpoint.query, given),
        body=_validated(visit, endpoint, body),
        request_id=current_request().request_id,
    )
    reply = await endpoint.handler(context)
    assert not isinstance(reply, Handover), f"{operation} speaks a protocol of its own"
    if not isinstance(reply, Reply):
        raise NotFound(refusal_text("file"))
    return _shown(json.loads(to_json(reply.data))), reply.meta


def _validated(visit: Visit, endpoint: Endpoint[Any, Any], body: Mapping[str, Any]) -> RequestModel:
    model: type[RequestModel] = endpoint.body
    return validate_body(model, dict(body), visit.reach)


def _shown(data: Any) -> Any:
    """Data with the names of fields as all pages have them; those of messaging are in camel case."""
    if isinstance(data, list):
        return [_shown(item) for item in data]
    return {_snake(name): value for name, value in data.items()} if isinstance(data, dict) else data


def _snake(name: str) -> str:
    return _CAMEL.sub(lambda found: f"_{found[0].lower()}", name)


def typed(model: type[RequestModel], form: Mapping[str, str]) -> dict[str, Any]:
    """Fields of a form in the types of the body; what has another form stays text, and is refused."""
    found: dict[str, Any] = {}
    for name, declared in model.model_fields.items():
        text = form.get(declared.alias or name, form.get(name, "")).strip()
        if text:
            found[declared.alias or name] = _value(text, _kinds(declared.annotation))
    return found


def _kinds(annotation: Any) -> set[type]:
    """The types that an annotation permits, without those of their parts."""
    origin = get_origin(annotation)
    if isinstance(origin, type) and issubclass(origin, (list, dict)):
        return {origin}
    if isinstance(annotation, type):
        return {dict} if issubclass(annotation, BaseModel) else {annotation}
    parts = get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        parts = parts[:1]
    # The values of a Literal are no types.
    return set().union(*(_kinds(part) for part in parts if not isinstance(part, (str, int))))


def _value(text: str, kinds: set[type]) -> Any:
    if list in kinds:
        return [word for word in _WORDS.split(text) if word] if not text.startswith("[") else _parsed(text)
    if dict in kinds:
        return _parsed(text)
    if bool in kinds and text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        if number in kinds:
            with contextlib.suppress(ValueError):
                return number(text)
    return text


def _parsed(text: str) -> Any:
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    return text


@cache
def _endpoints() -> Mapping[str, Endpoint[Any, Any]]:
    return {endpoint.name: endpoint for endpoint in ENDPOINTS}
