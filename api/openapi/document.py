"""OpenAPI 3.1 document, built from the endpoint declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from api.http.endpoint import Endpoint, Identifiers, PublicEndpoint
from api.http.errors import ErrorStyle, masking_code, status_of
from api.http.files import RANGE_NOT_SATISFIABLE
from api.http.session import COOKIE
from api.http.twilio_errors import codes_of_fields, twilio_code
from api.openapi.examples import EXAMPLES
from api.openapi.links import links_from
from callcontrol import errors as domain
from callcontrol.accounts.keys import PREFIXES

__all__ = ["openapi_document", "product_version"]

_Paths = Mapping[str, Mapping[str, Any]]
_REF = "#/components/schemas/{model}"

# Further responses of endpoints that return a file.
_UNCHANGED = "`If-None-Match` or `If-Modified-Since` names what the client has."
_BEYOND = "`Range` begins behind the end of the file."

# Errors of the HTTP layer, before those of an endpoint.
_EDGE_ERRORS: Mapping[int, tuple[str, str]] = {
    408: ("REQUEST_TIMEOUT", "The body did not arrive in time."),
    413: ("PAYLOAD_TOO_LARGE", "The body exceeds 1 MiB."),
    415: ("UNSUPPORTED_MEDIA_TYPE", "The body is of another type."),
}
_PREFIXES = ", ".join(f"{prefix}... of {service}" for service, prefix in PREFIXES.items())
_RATE_HEADERS: Mapping[str, str] = {
    "X-RateLimit-Limit": "Requests per minute.",
    "X-RateLimit-Remaining": "Requests left in this minute.",
    "X-RateLimit-Reset": "End of the minute, in epoch seconds.",
}


def openapi_document(
    endpoints: Sequence[Endpoint[Any, Any]], public: Sequence[PublicEndpoint], server_url: str
) -> dict[str, Any]:
    """Describe the endpoints."""
    described, definitions = _described(tuple(endpoints))
    paths = dict(described)
    for route in public:
        paths[route.path] = {**paths.get(route.path, {}), "get": _public_operation(route)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Trunkline",
            "version": product_version(),
            "description": (
                "Calls, numbers, carrier trunks, voice agents, messaging and tools over a REST API. "
                f"Each service takes keys of its own, and keys of all services, {PREFIXES['all']}... "
                "HEAD is answered wherever GET is."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": server_url}],
        "security": [{"key": []}],
        "tags": [{"name": name} for name in _tags(endpoints, public)],
        "paths": paths,
        "components": {
            "schemas": {
                **definitions,
                "Error": _ERROR_SCHEMA,
                "Meta": _META,
                "ListMeta": _LIST_META,
                "KeysetMeta": _KEYSET_META,
                "Pagination": _PAGINATION,
            },
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": f"A key of the endpoint's service, or of all services: {_PREFIXES}.",
                },
                "api_key": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-API-Key",
                    "description": f"A key of messaging, {PREFIXES['messaging']}..., or of all services.",
                },
                "console_session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": COOKIE,
                    "description": (
                        "The session of somebody signed in to the console, with the rights of its key. "
                        "A change must come from a page of this server (`Sec-Fetch-Site`, `Origin`)."
                    ),
                },
                "account_and_key": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "account_sid and a key of the platform or of all services.",
                },
            },
            "headers": {
                name: {"description": text, "schema": {"type": "integer"}}
                for name, text in _RATE_HEADERS.items()
            },
        },
    }


def product_version() -> str:
    """Installed version."""
    try:
        return metadata.version("trunkline")
    except metadata.PackageNotFoundError:
        return "0.0.0"


def _tags(endpoints: Iterable[Endpoint[Any, Any]], public: Iterable[PublicEndpoint]) -> list[str]:
    return list(dict.fromkeys([item.tag for item in endpoints] + [item.tag for item in public]))


@lru_cache(maxsize=1)
def _described(endpoints: tuple[Endpoint[Any, Any], ...]) -> tuple[_Paths, Mapping[str, Any]]:
    """
    Build the paths of the endpoints, and the definitions that they refer to.

    Built once for all applications of a process: it takes a good part of a second.
    """
    schemas = _schemas(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, schemas)
        links = links_from(endpoint, endpoints)
        if links:
            operation["responses"][str(endpoint.success)]["links"] = links
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return paths, schemas["definitions"]


def _schemas(endpoints: Sequence[Endpoint[Any, Any]]) -> dict[str, Any]:
    """Schema definitions of all models, and the reference to each by model and mode."""
    wanted: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {}
    for endpoint in endpoints:
        if endpoint.takes_body:
            wanted[endpoint.body, "validation"] = None
        wanted[endpoint.query, "validation"] = None
        if endpoint.response is not None:
            wanted[endpoint.response, "serialization"] = None
    references, document = models_json_schema(list(wanted), ref_template=_REF)
    return {"references": references, "definitions": document.get("$defs", {})}


def _operation(endpoint: Endpoint[Any, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": f"{endpoint.description} {_needs(endpoint)}".strip(),
        "tags": [endpoint.tag],
        "parameters": _parameters(endpoint, schemas),
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.ticket is not None:
        operation["security"] = [{"key": []}, {}]
    if endpoint.style is ErrorStyle.TWILIO:
        operation["security"] = [{"key": []}, {"account_and_key": []}]
    if endpoint.style is ErrorStyle.MESSAGING:
        operation["security"] = [{"key": []}, {"api_key": []}]
    if endpoint.sessions:
        operation["security"] = [*operation["security"], {"console_session": []}]
    if endpoint.takes_body:
        content: dict[str, Any] = {"schema": schemas["references"][endpoint.body, "validation"]}
        if endpoint.name in EXAMPLES:
            content["example"] = EXAMPLES[endpoint.name]
        operation["requestBody"] = {
            "required": endpoint.needs_body,
            "content": dict.fromkeys(endpoint.media_types, content),
        }
        if endpoint.text is not None:
            # The example is that of JSON: generators of requests have no serializer for every type.
            text = {"schema": {"type": "string", "minLength": 1}}
            operation["requestBody"]["content"][endpoint.text.media_type] = text
    if endpoint.spoken is not None and endpoint.spoken.request is not None:
        content = {"schema": endpoint.spoken.request, "example": EXAMPLES[endpoint.name]}
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    return operation


def _needs(endpoint: Endpoint[Any, Any]) -> str:
    """Text that names the required scope, and the key's service unless it is the platform."""
    if endpoint.scope is None:
        return "Any key of the account may ask."
    of = "" if endpoint.service in ("platform", "all") else f" of a key of the service {endpoint.service}"
    session = ", or of a session of the console" if endpoint.sessions else ""
    return f"Needs the scope `{endpoint.scope}`{of}{session}."


def _parameters(endpoint: Endpoint[Any, Any], schemas: Mapping[str, Any]) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _identifier(endpoint, name)}
        for name in endpoint.parameters
    ]
    reference = schemas["references"][endpoint.query, "validation"]["$ref"]
    model = schemas["definitions"][reference.rsplit("/", 1)[1]]
    required = model.get("required", [])
    for name, schema in model.get("properties", {}).items():
        parameters.append({"name": name, "in": "query", "required": name in required, "schema": schema})
    if endpoint.idempotent:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "The same key and body within 24 h return the stored response.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
            }
        )
    for name, text in endpoint.spoken.headers.items() if endpoint.spoken is not None else ():
        parameters.append(
            {
                "name": name,
                "in": "header",
                "required": False,
                "description": text,
                "schema": {"type": "string"},
            }
        )
    return parameters


def _identifier(endpoint: Endpoint[Any, Any], name: str) -> dict[str, Any]:
    """Schema of a path parameter."""
    kind = endpoint.identified_by(name)
    if kind is Identifiers.UUID:
        return {"type": "string", "format": "uuid"}
    if kind is Identifiers.INTEGER:
        return {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}
    return {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}


def _responses(endpoint: Endpoint[Any, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {str(endpoint.success): _success(endpoint, schemas)}
    codes: dict[int, dict[str, str]] = {}
    if endpoint.media_type is not None:
        part = {**responses[str(endpoint.success)], "description": "The part that `Range` asks for."}
        responses |= {"206": part, "304": {"description": _UNCHANGED}}
        is_twilio = endpoint.style is ErrorStyle.TWILIO
        codes[416] = {str(twilio_code(416)) if is_twilio else RANGE_NOT_SATISFIABLE: _BEYOND}
    for error in endpoint.all_errors:
        status, code = _shown_as(error, endpoint.style)
        codes.setdefault(status, {})[code] = (error.__doc__ or "").strip().splitlines()[0]
    if endpoint.style is ErrorStyle.TWILIO:
        codes[400] |= codes_of_fields([*endpoint.body.model_fields, *endpoint.query.model_fields])
    for status, (code, text) in _EDGE_ERRORS.items():
        if endpoint.method != "GET" and endpoint.media_types:
            shown = masking_code(code) if endpoint.style is ErrorStyle.MASKING else code
            codes.setdefault(status, {})[
                str(twilio_code(status)) if endpoint.style is ErrorStyle.TWILIO else shown
            ] = text
    for status in sorted(codes):
        responses[str(status)] = {
            "description": "\n".join(f"- `{code}`: {text}" for code, text in codes[status].items()),
            "content": {"application/json": {"schema": _error_schema(codes[status], endpoint.style)}},
        }
    if endpoint.spoken is not None:
        for status, (text, content) in endpoint.spoken.answers.items():
            _also_spoken(responses, str(status), text, content)
    return responses


def _also_spoken(
    responses: dict[str, Any], status: str, text: str, content: Mapping[str, Mapping[str, Any]]
) -> None:
    """Add a response of another protocol; an error under the same status is kept beside it."""
    kinds = {kind: {"schema": schema} for kind, schema in content.items()}
    refusal = responses.get(status, {}).get("content", {}).get("application/json")
    if refusal is None:
        known = responses.get(status, {}).get("headers")
        responses[status] = {"description": text} | ({"headers": known} if known else {})
        if kinds:
            responses[status]["content"] = kinds
        return
    either = [refusal["schema"], *(kind["schema"] for kind in kinds.values())]
    responses[status]["description"] += f"\n- {text}"
    responses[status]["content"]["application/json"] = {"schema": {"anyOf": either}}


def _shown_as(error: type[domain.DomainError], style: ErrorStyle) -> tuple[int, str]:
    """Status and code of an error; refusals before a wiring endpoint's own work keep the general code."""
    if style is ErrorStyle.WIRING and error in (domain.Unauthorized, domain.Forbidden, domain.RateLimited):
        return status_of(error)
    return status_of(error, style)


def _success(endpoint: Endpoint[Any, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in _RATE_HEADERS}
    if endpoint.media_type is not None:
        content = {endpoint.media_type: {"schema": {"type": "string", "format": "binary"}}}
        return {"description": "The file.", "headers": headers, "content": content}
    if endpoint.response is None:
        return {"description": "Done.", "headers": headers}
    content = {"application/json": {"schema": _success_schema(endpoint, schemas)}}
    if endpoint.text is not None:
        content[endpoint.text.media_type] = {"schema": {"type": "string"}}
    return {"description": "Success.", "headers": headers, "content": content}


def _success_schema(endpoint: Endpoint[Any, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    item: dict[str, Any] = schemas["references"][endpoint.response, "serialization"]
    if endpoint.style in (ErrorStyle.TWILIO, ErrorStyle.JAMBONZ) or endpoint.bare:
        return item
    data = {"type": "array", "items": item} if endpoint.paged else item
    if endpoint.style is ErrorStyle.MESSAGING:
        page = {"pagination": {"$ref": _REF.format(model="Pagination")}} if endpoint.paged else {}
        return _object(success={"const": True}, data=data, **page)
    meta = "KeysetMeta" if endpoint.keyset else "ListMeta" if endpoint.paged else "Meta"
    return _object(data=data, meta={"$ref": _REF.format(model=meta)})


def _object(**properties: Any) -> dict[str, Any]:
    """Schema of an object that has all these properties."""
    return {"type": "object", "required": list(properties), "properties": properties}


def _error_schema(codes: Mapping[str, str], style: ErrorStyle) -> dict[str, Any]:
    text = {"type": "string"}
    if style is ErrorStyle.PLAIN:
        return {**_object(error=text), "additionalProperties": False}
    if style is ErrorStyle.TWILIO:
        code, status = {"enum": sorted(map(int, codes))}, {"type": "integer"}
        schema = _object(code=code, message=text, more_info=text, status=status)
    elif style is ErrorStyle.JAMBONZ:
        schema = _object(msg=text, code={"enum": sorted(codes)})
    elif style is ErrorStyle.MESSAGING:
        schema = _object(success={"const": False}, error=text, code={"enum": sorted(codes)}, message=text)
    else:
        listed = {"properties": {"error": {"properties": {"code": {"enum": sorted(codes)}}}}}
        return {"allOf": [{"$ref": _REF.format(model="Error")}, listed]}
    schema["properties"]["details"] = _DETAILS
    return {**schema, "additionalProperties": False}


def _public_operation(route: PublicEndpoint) -> dict[str, Any]:
    schema = {"type": "object"} if route.media_type == "application/json" else {"type": "string"}
    return {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "security": [],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"enum": list(values)}}
            for name, values in route.parameters.items()
        ],
        "responses": {
            str(status): {"description": text, "content": {route.media_type: {"schema": schema}}}
            for status, text in route.statuses.items()
        },
    }


_FIELD_ERROR = _object(field={"type": "string"}, message={"type": "string"})
_FIELD_ERROR["properties"]["reason"] = {
    "type": "string",
    "description": f"Stable word for the cause of some errors: {domain.NO_ROUTE}, {domain.OPTED_OUT}.",
}
_DETAILS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "errors": {
            "type": "array",
            "description": "Every field that is missing, unknown or invalid.",
            "items": _FIELD_ERROR,
        }
    },
}
_ERROR = _object(
    code={"type": "string", "description": "Stable code; the message may change."},
    message={"type": "string"},
)
_ERROR["properties"]["details"] = _DETAILS
_ERROR_SCHEMA = _object(error=_ERROR)
_WHOLE: Mapping[str, Any] = {"type": "integer"}
_META = _object(request_id={"type": "string"}, timestamp={"type": "string", "format": "date-time"})
_LIST_META = _object(**_META["properties"], total=_WHOLE, page=_WHOLE, per_page=_WHOLE, total_pages=_WHOLE)
_KEYSET_META: dict[str, Any] = {
    "type": "object",
    "required": [*_META["required"], "total", "per_page", "total_pages", "next_cursor"],
    "properties": {
        **_LIST_META["properties"],
        "next_cursor": {
            "type": ["string", "null"],
            "description": "Value of cursor for the next page; null at the end of the list.",
        },
    },
}
_PAGINATION = _object(page=_WHOLE, pageSize=_WHOLE, total=_WHOLE, totalPages=_WHOLE)
