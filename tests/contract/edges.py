"""Behaviour common to all endpoints, before their own work begins."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

from api.http.endpoint import Endpoint, Identifiers, path_parameters
from api.http.errors import ErrorStyle, masking_code
from api.schemas.base import RequestModel, field_names
from callcontrol.accounts.keys import PREFIXES
from tests.contract.stage import Answer, Stage

_RATE_HEADERS = (
    *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
    *("RateLimit-Policy", "RateLimit"),
)
_TWILIO = {
    "VALIDATION_ERROR": "20001",
    "UNAUTHORIZED": "20003",
    "FORBIDDEN": "20403",
    "PAYLOAD_TOO_LARGE": "20413",
    "UNSUPPORTED_MEDIA_TYPE": "20415",
}


def key_of(stage: Stage, endpoint: Endpoint[Any, Any]) -> str:
    """A key of the own account that opens an endpoint."""
    return stage.own.keys[endpoint.service]


def spelled(endpoint: Endpoint[Any, Any], code: str) -> str | None:
    """Return an endpoint's spelling of an edge error code; None where errors are plain texts."""
    if endpoint.style is ErrorStyle.PLAIN:
        return None
    if endpoint.style is ErrorStyle.TWILIO:
        return _TWILIO[code]
    if endpoint.style is ErrorStyle.MASKING:
        return masking_code(code)
    if endpoint.style is ErrorStyle.WIRING and code == "VALIDATION_ERROR":
        return "validation"
    return code


async def ask(
    stage: Stage,
    endpoint: Endpoint[Any, Any],
    key: str,
    *,
    method: str | None = None,
    end: str = "",
    **parts: Any,
) -> Answer:
    """Ask an endpoint for something that is not there; `end` is put behind its path."""
    values = {name: _nothing(endpoint, name) for name in path_parameters(endpoint.path)}
    path = endpoint.path.format(**{**values, "sid": stage.own.account_sid})
    answer = await stage.ask(method or endpoint.method, path + end, key=key, **parts)
    if "X-Request-Id" not in (parts.get("headers") or {}):
        uuid.UUID(answer.headers["X-Request-Id"])
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    return answer


def _nothing(endpoint: Endpoint[Any, Any], parameter: str) -> str:
    """An identifier of nothing that there is."""
    if endpoint.identified_by(parameter) is Identifiers.INTEGER:
        return str(2**62)
    return str(uuid.uuid4())


async def without_key(stage: Stage, endpoint: Endpoint[Any, Any]) -> None:
    """Nobody without a valid key learns anything but that."""
    prefix = PREFIXES[endpoint.service]
    own = key_of(stage, endpoint)
    headers: tuple[dict[str, str], ...] = (
        {},
        {"Authorization": own},
        {"Authorization": f"Basic {own}"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {prefix}short"},
        {"Authorization": f"Bearer xx_{own[3:]}"},
        {"Authorization": f"Bearer {own[:-1]}{'a' if own[-1] != 'a' else 'b'}"},
        {"Authorization": f"Bearer {stage.own.revoked_key}"},
    )
    for lines in headers:
        answer = await ask(stage, endpoint, "", headers=lines)
        assert (answer.status, answer.code) == (401, spelled(endpoint, "UNAUTHORIZED")), (lines, answer)
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert not set(_RATE_HEADERS) & answer.headers.keys(), "there is nobody to be limited"
    if endpoint.style is ErrorStyle.MESSAGING:
        both = {"Authorization": f"Bearer {own}", "X-API-Key": stage.accounts["other"].keys["messaging"]}
        for lines in ({"X-API-Key": ""}, {"X-API-Key": own[:-1]}, both):
            answer = await ask(stage, endpoint, "", headers=lines)
            assert (answer.status, answer.code) == (401, "UNAUTHORIZED"), (lines, answer)


async def with_a_lesser_key(stage: Stage, endpoint: Endpoint[Any, Any]) -> None:
    """A key without the scope, and one of another service, are refused; what is missing is named."""
    if endpoint.scope is None:
        for key in stage.own.keys.values():
            assert (await ask(stage, endpoint, key)).status == endpoint.success
        return
    forbidden = spelled(endpoint, "FORBIDDEN")
    narrow = stage.own.narrow_key_without(endpoint.service, endpoint.scope)
    if narrow is not None:
        answer = await ask(stage, endpoint, narrow)
        assert (answer.status, answer.code) == (403, forbidden), answer
        assert endpoint.scope in answer.message
    wrong = stage.own.keys["platform" if endpoint.service == "assistant" else "assistant"]
    answer = await ask(stage, endpoint, wrong)
    assert (answer.status, answer.code) == (403, forbidden), answer
    # What is of all services is refused for the scope alone.
    assert (endpoint.scope if endpoint.service == "all" else endpoint.service) in answer.message


async def with_a_key_of_all_services(stage: Stage, endpoint: Endpoint[Any, Any]) -> None:
    """A key of all services that names every scope, and one that has them by their wildcard, are let in."""
    for key in (stage.own.keys["all"], stage.own.every_scope_key):
        answer = await ask(stage, endpoint, key)
        assert answer.status not in (401, 403), answer


async def with_what_it_does_not_know(stage: Stage, endpoint: Endpoint[Any, Any]) -> None:
    """
    Unknown fields and repeated parameters are named, and bodies that are no JSON objects refused.

    Unknown parameters are ignored.
    """
    key = key_of(stage, endpoint)
    invalid = (400, spelled(endpoint, "VALIDATION_ERROR"))
    async for answer, field in _wrong(stage, endpoint, key):
        assert (answer.status, answer.code) == invalid, answer
        assert field in answer.wrong_fields([field]), answer
        if endpoint.style is not ErrorStyle.PLAIN:
            assert all(error["message"] for error in answer.error["details"]["errors"])
        assert set(_RATE_HEADERS) <= answer.headers.keys()
    if endpoint.method == "GET" and endpoint.spoken is None:
        plain = await ask(stage, endpoint, key)
        newer = await ask(stage, endpoint, key, query=[("_", "1"), ("colour", "red"), ("colour", "blue")])
        assert (newer.status, newer.code) == (plain.status, plain.code), newer
        assert set(_RATE_HEADERS) <= newer.headers.keys()


async def _wrong(stage: Stage, endpoint: Endpoint[Any, Any], key: str) -> AsyncIterator[tuple[Answer, str]]:
    model: type[RequestModel] = endpoint.query
    if "page" in field_names(model):
        yield await ask(stage, endpoint, key, query=[("page", "1"), ("page", "2")]), "page"
    if endpoint.takes_body:
        yield await ask(stage, endpoint, key, body={"colour": "red"}), "colour"
        # Where nothing has to be chosen a body may be left out, and the request has its effect.
        missing = [b""] if endpoint.needs_body else []
        for text in (*missing, b"{", b"[]", b'{"a": 1, "a": 2}', b"\xff", b'{"a": NaN}', b"[" * 100_000):
            yield await _ask_raw(stage, endpoint, key, text, "application/json"), "body"


async def with_a_body_it_does_not_take(stage: Stage, endpoint: Endpoint[Any, Any]) -> None:
    """A body that is too large, or of another kind, is refused before it is read as JSON."""
    if endpoint.method == "GET" or not endpoint.media_types:
        return
    key = key_of(stage, endpoint)
    answer = await _ask_raw(stage, endpoint, key, b"<a/>", "application/xml")
    assert (answer.status, answer.code) == (415, spelled(endpoint, "UNSUPPORTED_MEDIA_TYPE")), answer
    answer = await _ask_raw(stage, endpoint, key, b" " * (1024 * 1024 + 1), "application/json")
    assert (answer.status, answer.code) == (413, spelled(endpoint, "PAYLOAD_TOO_LARGE")), answer


async def with_head(stage: Stage, endpoint: Endpoint[Any, Any]) -> None:
    """HEAD is answered as GET is, without the body."""
    if endpoint.method != "GET" or endpoint.spoken is not None:
        return
    key = key_of(stage, endpoint)
    whole = await ask(stage, endpoint, key)
    head = await ask(stage, endpoint, key, method="HEAD")
    assert (head.status, head.raw) == (whole.status, b""), head
    assert head.headers["Content-Type"] == whole.headers["Content-Type"]


async def with_a_slash_at_its_end(stage: Stage, endpoint: Endpoint[Any, Any]) -> None:
    """It is the same path."""
    if endpoint.method != "GET" or endpoint.spoken is not None:
        return
    key = key_of(stage, endpoint)
    plain, slashed = await ask(stage, endpoint, key), await ask(stage, endpoint, key, end="/")
    assert (slashed.status, slashed.code) == (plain.status, plain.code), (plain, slashed)


async def with_a_request_id(stage: Stage, endpoint: Endpoint[Any, Any]) -> None:
    """A client's own request id comes back, unless it could do harm."""
    headers = {"X-Request-Id": "order-7:retry.2"}
    answer = await ask(stage, endpoint, "", headers={**headers, "Authorization": "Bearer none"})
    assert answer.headers["X-Request-Id"] == "order-7:retry.2"
    for harmful in ("a" * 129, "a b", "ä", '"x"'):
        answer = await ask(
            stage, endpoint, "", headers={"X-Request-Id": harmful, "Authorization": "Bearer none"}
        )
        assert answer.headers["X-Request-Id"] != harmful


async def _ask_raw(
    stage: Stage, endpoint: Endpoint[Any, Any], key: str, raw: bytes, content_type: str
) -> Answer:
    """Ask an endpoint with a body of bytes."""
    return await ask(stage, endpoint, key, raw=raw, headers={"Content-Type": content_type})
