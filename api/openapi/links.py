"""OpenAPI links from an endpoint that creates an object to the endpoints of that object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api.http.endpoint import Endpoint

__all__ = ["links_from"]

# Path parameters whose value is in a field of another name.
_FIELDS: Mapping[str, Sequence[str]] = {
    "sid": ("account_sid",),
    "callSid": ("call_sid",),
    "id": ("phone_number_id", "id"),
    "call_id": ("id",),
    "webhook_id": ("id",),
    "key_id": ("id",),
}


def links_from(made_by: Endpoint[Any, Any], endpoints: Sequence[Endpoint[Any, Any]]) -> dict[str, Any]:
    """
    Links of an endpoint that creates an object, by operationId.

    An endpoint is linked when every identifier in its path is one of the request's path or a field of the
    created object, and at least one is of the object. Both endpoints must have the same tag, so that an `id`
    is of the same kind.
    """
    if made_by.success != 201 or made_by.response is None:
        return {}
    fields = made_by.response.model_fields.keys()
    links: dict[str, Any] = {}
    for endpoint in endpoints:
        names = endpoint.parameters
        if endpoint.tag != made_by.tag or not names:
            continue
        values = {name: _expression(name, made_by, fields) for name in names}
        found = {name: value for name, value in values.items() if value is not None}
        if len(found) == len(names) and any("body" in value for value in found.values()):
            links[endpoint.name] = {"operationId": endpoint.name, "parameters": found}
    return links


def _expression(name: str, made_by: Endpoint[Any, Any], fields: Any) -> str | None:
    """Runtime expression of an identifier; None if neither path nor object has it."""
    if name in made_by.parameters:
        return f"$request.path.{name}"
    field = next((field for field in _FIELDS.get(name, (name,)) if field in fields), None)
    return f"$response.body#/data/{field}" if field is not None else None
