"""
Pipeline of a request to an `Endpoint`.

Key, rate, scope, path, query, body, drain, idempotency key, handler, envelope. Cheap and decisive checks
come first: the server reads no body of a client without a key.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web
from pydantic_core import to_json

from api.http.auth import authenticate, bearer_of, bearer_of_basic, uuid_of_account
from api.http.body import FORM, TextForm, parse_form, parse_json, read_body
from api.http.endpoint import Context, Endpoint, FileReply, Handover, Identifiers, Reply
from api.http.errors import ApiError, ErrorStyle, to_api_error, unexpected
from api.http.files import PrivateFile
from api.http.middleware import current_request
from api.http.ratelimit import RateLimiter, allowances_of
from api.http.session import COOKIE, TAKES_SESSIONS, principal_of_session
from api.process.lifecycle import Lifecycle
from api.schemas.base import NoBody, Reach, RequestModel, field_names, validate_body, validate_query
from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Services
from callcontrol.clock import timestamp
from callcontrol.errors import (
    DomainError,
    Forbidden,
    NodeUnreachable,
    NotFound,
    RateLimited,
    ServiceUnavailable,
    ValidationFailed,
)
from callcontrol.models import Principal, Service

if TYPE_CHECKING:
    from api.http.forward import Forwarder
    from api.mcp.gateway import McpGateway

__all__ = ["Pipeline"]

_log = logging.getLogger("api.http.pipeline")

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INTEGER = re.compile(r"[1-9][0-9]{0,18}")
_MAX_INTEGER = 2**63 - 1
_IDENTIFIERS: Mapping[Identifiers, str] = {
    Identifiers.UUID: "identifiers are UUIDs as the create calls return them",
    Identifiers.INTEGER: "identifiers are whole numbers as the create calls return them",
    Identifiers.NAME: "names have 1 to 64 letters, digits, underscores and hyphens",
}
_PAGINATION: Mapping[str, str] = {
    "page": "page",
    "per_page": "pageSize",
    "total": "total",
    "total_pages": "totalPages",
}
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_ADMINISTRATION = "/integrations/admin/"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """
    Runs endpoints; `is_trusted` is true for sources that are not rate-limited.

    `requests_per_minute` is, by service, the limit of a key whose account has no limit of its own.
    `forwarder` forwards what another node must answer, on a database that several can share.
    """

    services: Services
    mcp: McpGateway
    lifecycle: Lifecycle
    limiter: RateLimiter
    is_trusted: Callable[[str | None], bool]
    requests_per_minute: Mapping[Service, int]
    check_replies: bool = False
    forwarder: Forwarder | None = None

    def handler(self, endpoint: Endpoint[Any, Any]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Make the aiohttp handler of an endpoint."""

        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                principal = await self._admit(request, endpoint)
                try:
                    return await self._answer(request, endpoint, principal)
                except NodeUnreachable as elsewhere:
                    # Nothing is done here before this refusal, and an idempotency key is released.
                    if self.forwarder is None:
                        raise
                    return await self.forwarder.answer(request, elsewhere)
            except DomainError as error:
                raise to_api_error(error, endpoint.style) from error
            except ApiError as error:
                error.style = endpoint.style
                raise
            except Exception as error:
                # Handled here only because each style has its own error format.
                raise unexpected(error, endpoint.style) from error

        return handle

    async def admit_unrouted(self, request: web.Request) -> None:
        """
        Check the key of a request that no endpoint answers: paths of the administration are for its keys.

        Raises:
            ApiError: It is for a path of the administration, and has no admin key.
        """
        if not f"{request.path}/".startswith(_ADMINISTRATION):
            return
        try:
            await authenticate(
                request.headers.getall("Authorization", []), self.services.storage.keys, "admin"
            )
        except DomainError as error:
            raise to_api_error(error) from error

    async def _admit(self, request: web.Request, endpoint: Endpoint[Any, Any]) -> Principal:
        """Authenticate, count, check the scope; wiring endpoints keep the general codes of these refusals."""
        request_context = current_request()
        try:
            principal = await self._principal(request, endpoint)
            request_context.account_sid = principal.account_sid
            if not self.is_trusted(request.remote):
                self._count(principal, endpoint)
            if endpoint.scope is not None and endpoint.scope not in principal.scopes:
                raise Forbidden(f"This key lacks the scope {endpoint.scope}; create one that has it.")
        except DomainError as error:
            own = endpoint.style in (ErrorStyle.TWILIO, ErrorStyle.MESSAGING, ErrorStyle.JAMBONZ)
            raise to_api_error(error, endpoint.style if own else ErrorStyle.GENERAL) from error
        return principal

    async def _principal(self, request: web.Request, endpoint: Endpoint[Any, Any]) -> Principal:
        """
        Authenticate the request by its ticket, its token, its key or its session.

        Raises:
            Unauthorized: It has none of these, or its key or session is not valid.
            Forbidden: Its ticket is not valid, its key belongs to another service, or its session may not be
                used in this way.
        """
        if endpoint.ticket is not None:
            # A parameter that is given twice is ambiguous, so it proves nothing.
            query = {
                name: value if request.query.getall(name) == [value] else ""
                for name, value in request.query.items()
            }
            path = {name: value.lower() for name, value in request.match_info.items()}
            principal = await endpoint.ticket(self.services, path, query)
            if principal is not None:
                return principal
        headers = request.headers.getall("Authorization", [])
        if endpoint.token is not None and len(headers) == 1:
            principal = await endpoint.token(self.services, bearer_of(headers[0]))
            if principal is not None:
                return principal
        if endpoint.style is ErrorStyle.TWILIO:
            headers = list(bearer_of_basic(headers, request.match_info["sid"]))
        plain = request.headers.getall("X-API-Key", []) if endpoint.style is ErrorStyle.MESSAGING else ()
        basic = endpoint.style is ErrorStyle.TWILIO
        has_session = COOKIE in request.cookies and TAKES_SESSIONS in request.app
        if endpoint.sessions and not headers and not plain and has_session:
            storage = self.services.storage
            return await principal_of_session(request, storage, endpoint.service, endpoint.scope)
        return await authenticate(
            headers, self.services.storage.keys, endpoint.service, plain=plain, basic=basic
        )

    def _count(self, principal: Principal, endpoint: Endpoint[Any, Any]) -> None:
        """
        Count the request against all its limits, and add the rate limit headers to the response.

        Raises:
            RateLimited: One of the limits is exhausted.
        """
        service = endpoint.service
        default = self.requests_per_minute[service]
        limit = self.limiter.take(
            allowances_of(principal, service, endpoint.limit_name, default, endpoint.requests_per_minute)
        )
        current_request().headers.update(limit.headers())
        if not limit.allowed:
            limited = f"by this {limit.policy}"
            if limit.policy == "endpoint":
                name = endpoint.limited_as
                limited = "to this endpoint" if name is None else f"to all {name} endpoints together"
            counted = f"{limit.limit} requests in {limit.window_s} s {limited}"
            raise RateLimited(f"More than {counted}; wait for Retry-After.", retry_after_s=limit.reset_in_s)

    async def _answer(
        self, request: web.Request, endpoint: Endpoint[Any, Any], principal: Principal
    ) -> web.StreamResponse:
        path = _path(request, endpoint, principal)
        text = _text_form(endpoint, request)
        # Beside a text the query has fields of the body, which are judged with it.
        query = validate_query(endpoint.query, request.query.items() if text is None else ())
        raw = await read_body(request, endpoint.media_types, expected=endpoint.reads_body)
        has_gateway = partial(self.services.storage.directory.has_gateway, principal.account_sid)
        reach = Reach(self.services.verb_rules, has_gateway)
        if text is not None:
            body = _body_of_text(endpoint, text, raw, request, reach)
        else:
            body = _body(endpoint, raw, request.content_type, reach)
        if endpoint.places_calls and not self.lifecycle.takes_calls:
            message = "The server is starting or shutting down and takes no new calls; retry shortly."
            raise ServiceUnavailable(message, retry_after_s=5)
        context = Context(
            self.services,
            self.mcp,
            principal,
            principal.account_sid,
            path,
            query,
            body,
            current_request().request_id,
            raw,
        )
        key = _idempotency_key(request, endpoint)
        if key is None:
            reply = await endpoint.handler(context)
            if isinstance(reply, Handover):
                return await reply.answer(request)
            response = self._respond(endpoint, reply)
            if text is not None and isinstance(reply, Reply):
                shown = str(reply.data[text.field]).encode()
                return web.Response(body=shown, status=endpoint.success, content_type=text.media_type)
            return response
        return await self._answer_once(request, endpoint, context, key, raw)

    async def _answer_once(
        self,
        request: web.Request,
        endpoint: Endpoint[Any, Any],
        context: Context[Any, Any],
        key: str,
        raw: bytes,
    ) -> web.StreamResponse:
        """
        Answer a request with an idempotency key.

        A refusal releases the key, as nothing was done; an unexpected failure keeps it, as the call may have
        been placed: repeating the request then gets the same 500 and no second call.
        """
        store = self.services.storage.idempotency
        account_sid = context.account_sid
        name = f"{request.method} {request.path.rstrip('/')}"
        asked = hashlib.sha256(raw)
        if endpoint.confidential:
            # What was shown to one key of the account must not be shown to another.
            asked.update(context.principal.key_id.encode())
        stored = await store.begin(account_sid, key, name, asked.hexdigest())
        if stored is not None:
            replayed = _json(stored.body, stored.status)
            replayed.headers["Idempotent-Replayed"] = "true"
            return replayed
        try:
            reply = await endpoint.handler(context)
            assert not isinstance(reply, Handover), "what speaks a protocol of its own takes no such key"
            response: web.StreamResponse = self._respond(endpoint, reply)
        except DomainError:
            await _keep(store.release(account_sid, key))
            raise
        except Exception as error:
            failure = unexpected(error, endpoint.style)
            await _keep(store.complete(account_sid, key, failure.status, _dump(failure.body())))
            raise failure from error
        assert isinstance(response, web.Response) and isinstance(response.body, bytes)
        await _keep(
            store.complete(account_sid, key, response.status, response.body, seal=endpoint.confidential)
        )
        return response

    def _respond(self, endpoint: Endpoint[Any, Any], reply: Reply | FileReply) -> web.StreamResponse:
        if isinstance(reply, FileReply):
            return PrivateFile(reply.path, endpoint.media_type or "application/octet-stream", endpoint.style)
        if endpoint.response is None:
            return web.Response(status=endpoint.success)
        if self.check_replies:
            _check(endpoint, reply)
        if endpoint.style in (ErrorStyle.TWILIO, ErrorStyle.JAMBONZ):
            return _json(_dump(reply.data), endpoint.success)
        if endpoint.style is ErrorStyle.MESSAGING:
            return _json(_dump(_messaging(endpoint, reply)), endpoint.success)
        meta = {"request_id": current_request().request_id, "timestamp": timestamp(utc_now()), **reply.meta}
        return _json(_dump({"data": reply.data, "meta": meta}), endpoint.success)


async def _keep(outcome: Awaitable[None]) -> None:
    """Store the outcome of a request; the client gets its response even when that fails."""
    try:
        await outcome
    except DomainError as error:
        _log.warning("the outcome of an idempotency key cannot be stored: %s", error.message)


def _path(request: web.Request, endpoint: Endpoint[Any, Any], principal: Principal) -> dict[str, str]:
    """Check identifiers in the path: the account must be the key's, all others of the declared kind."""
    values: dict[str, str] = {}
    for name in endpoint.parameters:
        value = request.match_info[name]
        if name == "sid" and endpoint.style is ErrorStyle.TWILIO:
            value = uuid_of_account(value)
        if name == "sid":
            if value.lower() != principal.account_sid.lower():
                raise Forbidden("This account is not the one of the key; use the key's own account_sid.")
        elif not _identifies(value, kind := endpoint.identified_by(name)):
            if endpoint.style is ErrorStyle.WIRING:
                raise ValidationFailed.of(name, "must be a UUID")
            raise NotFound(f"There is no such {name}; {_IDENTIFIERS[kind]}.")
        values[name] = value if endpoint.identifiers is Identifiers.NAME else value.lower()
    current_request().call_sid = values.get("callSid")
    return values


def _identifies(value: str, kind: Identifiers) -> bool:
    """True if a path segment has the form of this kind of identifier."""
    if kind is Identifiers.UUID:
        return _UUID.fullmatch(value) is not None
    if kind is Identifiers.NAME:
        return _NAME.fullmatch(value) is not None
    return _INTEGER.fullmatch(value) is not None and int(value) <= _MAX_INTEGER


def _messaging(endpoint: Endpoint[Any, Any], reply: Reply) -> dict[str, Any]:
    """Body of a success in the style of the messaging interface."""
    if endpoint.bare:
        return dict(reply.data)
    if not endpoint.paged:
        return {"success": True, "data": reply.data}
    pagination = {shown: reply.meta[name] for name, shown in _PAGINATION.items()}
    return {"success": True, "data": reply.data, "pagination": pagination}


def _body(endpoint: Endpoint[Any, Any], raw: bytes, content_type: str, reach: Reach) -> RequestModel:
    model: type[RequestModel] = endpoint.body
    if not raw.strip() and endpoint.needs_body:
        if content_type == FORM and FORM in endpoint.media_types:
            return validate_body(model, {}, reach)  # a form without fields
        raise ValidationFailed.of("body", "is required: a JSON object")
    if not raw.strip() or endpoint.spoken is not None:
        return validate_body(model, {}) if endpoint.takes_body else NoBody()
    if content_type == FORM:
        return validate_body(model, parse_form(raw, model.repeatable), reach)
    return validate_body(model, parse_json(raw), reach)


def _text_form(endpoint: Endpoint[Any, Any], request: web.Request) -> TextForm | None:
    """Form of the request if its body is a text; None if it is JSON or a form."""
    if endpoint.text is not None and request.content_type == endpoint.text.media_type:
        return endpoint.text
    return None


def _body_of_text(
    endpoint: Endpoint[Any, Any], text: TextForm, raw: bytes, request: web.Request, reach: Reach
) -> RequestModel:
    model: type[RequestModel] = endpoint.body
    beside: type[RequestModel] = endpoint.query
    fields = text.parse(raw, request.query.items(), field_names(beside))
    try:
        return validate_body(model, fields, reach)
    except ValidationFailed as refusal:
        raise text.named(refusal) from None


def _idempotency_key(request: web.Request, endpoint: Endpoint[Any, Any]) -> str | None:
    if not endpoint.idempotent or "Idempotency-Key" not in request.headers:
        return None
    keys = request.headers.getall("Idempotency-Key")
    if len(keys) != 1 or _IDEMPOTENCY_KEY.fullmatch(keys[0]) is None:
        message = "must be one value of 1 to 255 printable ASCII characters without spaces"
        raise ValidationFailed.of("Idempotency-Key", message)
    return keys[0]


def _check(endpoint: Endpoint[Any, Any], reply: Reply) -> None:
    assert endpoint.response is not None
    for item in reply.data if endpoint.paged else [reply.data]:
        endpoint.response.model_validate_json(_dump(item))


def _dump(value: Any) -> bytes:
    # The validator's own encoder takes a quarter of the time of the standard library's.
    return to_json(value)


def _json(body: bytes, status: int) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json", charset="utf-8")
