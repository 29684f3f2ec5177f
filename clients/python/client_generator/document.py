"""
The part of the OpenAPI document that the client has, ordered by groups.

A group is a tag, by the name of its attribute on the client. Each schema belongs to the one group that uses
it, or else to ``shared``, so that the modules of groups never import each other.
"""

from __future__ import annotations

import hashlib
import json
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from client_generator.names import method_name, resource_name, schema_names

__all__ = ["Operation", "Part", "digest_of", "read_document"]

SHARED: Final = "shared"
"""Group of the schemas that several groups use."""

_REF: Final = "#/components/schemas/"
# Twilio's and jambonz' own libraries ask these, clients of the Model Context Protocol the last.
_OF_OTHER_CLIENTS: Final = ("/2010-04-01/", "/jambonz/", "/integrations/mcp")
# The account is that of the key; the client fills it in.
_ACCOUNT_PATH: Final = "/v1/Accounts/{sid}/"
# Rules that the server checks; a client that does so, too, would refuse what a later server takes.
_RULES: Final = frozenset(
    {
        *("additionalProperties", "default", "examples", "exclusiveMaximum", "exclusiveMinimum", "title"),
        *("maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties"),
        *("minimum", "multipleOf", "pattern", "propertyNames", "uniqueItems"),
    }
)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """
    One method of the client.

    `parameters` are names and Python types of the path's parameters, `fields` is the schema that has query
    and body together, `result` that of the response's data, or of one item of a list. `envelope` is `data`,
    `bare`, `bytes` or `none`; `paging` is `cursor`, `page`, `whole` or None.
    """

    group: str
    name: str
    method: str
    path: str
    summary: str
    parameters: tuple[tuple[str, str], ...]
    fields: str | None
    queries: tuple[str, ...]
    required: bool
    idempotent: bool
    result: str | None
    envelope: str
    paging: str | None


@dataclass
class Part:
    """Operations, and by ``group.Name`` the schemas of their fields and those of their results."""

    operations: list[Operation] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)


def digest_of(document: Mapping[str, Any]) -> str:
    """SHA-256 of the operations and schemas that the client has, in hexadecimal."""
    return hashlib.sha256(json.dumps(asdict(read_document(document)), sort_keys=True).encode()).hexdigest()


def read_document(document: Mapping[str, Any]) -> Part:
    """Read the operations of the client, and the schemas that they need."""
    schemas: Mapping[str, Any] = document["components"]["schemas"]
    names = schema_names(schemas)
    found = list(_operations(document))
    asked = {operation.group: operation for operation, _ in found}.keys()
    fields = _Schemas(schemas, names, asked)
    results = _Schemas(schemas, names, asked)
    for operation, body in found:
        fields.use(operation.group, body)
        results.use(operation.group, {"$ref": _REF + operation.result} if operation.result else {})
    part = Part(fields=fields.placed(), results=results.placed())
    for operation, body in found:
        if body:
            name = f"{operation.group}.{operation.fields}"
            part.fields[name] = fields.bare(body)
            operation = replace(operation, fields=name)
        if operation.result:
            operation = replace(operation, result=results.places[operation.result])
        part.operations.append(operation)
    return part


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[Operation, dict[str, Any]]]:
    """Operations of the client, each with the schema of its fields, which is empty if it has none."""
    schemas: Mapping[str, Any] = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        if path.startswith(_OF_OTHER_CLIENTS):
            continue
        for method, described in methods.items():
            group = resource_name(described["tags"][0])
            name = method_name(described["operationId"], group)
            if name is not None:
                yield _operation(path, method, group, name, described, schemas)


def _operation(
    path: str, method: str, group: str, name: str, described: Mapping[str, Any], schemas: Mapping[str, Any]
) -> tuple[Operation, dict[str, Any]]:
    parameters = described.get("parameters", ())
    queries = {found["name"]: found for found in parameters if found["in"] == "query"}
    # The pages of a list are turned by the client.
    queries = {key: value for key, value in queries.items() if key not in ("page", "cursor")}
    body = _body_of(described, schemas)
    # What may stand in either is sent in the body.
    queries = {key: value for key, value in queries.items() if key not in body.get("properties", {})}
    wanted = [*body.get("required", ()), *(key for key, value in queries.items() if value["required"])]
    properties = {**{key: value["schema"] for key, value in queries.items()}, **body.get("properties", {})}
    result, envelope, paging = _result_of(described, schemas)
    own_account = path.startswith(_ACCOUNT_PATH)
    operation = Operation(
        group=group,
        name=name,
        method=method.upper(),
        path=path,
        summary=described["summary"],
        parameters=tuple(
            (found["name"], "int" if found["schema"].get("type") == "integer" else "str")
            for found in parameters
            if found["in"] == "path" and not (own_account and found["name"] == "sid")
        ),
        fields=_class_name(described["operationId"]) if properties else None,
        queries=tuple(queries),
        required=bool(wanted),
        idempotent=any(found["name"] == "Idempotency-Key" for found in parameters),
        result=result,
        envelope=envelope,
        paging=paging,
    )
    if not properties:
        return operation, {}
    named = {_argument(key): value for key, value in properties.items()}
    return operation, {
        "type": "object",
        "description": f"Fields of `{group}.{name}`.",
        "properties": named,
        "required": [_argument(key) for key in wanted],
    }


def _body_of(described: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    content = described.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return {}
    schema: Mapping[str, Any] = content["schema"]
    return schemas[schema["$ref"].removeprefix(_REF)] if "$ref" in schema else schema


def _result_of(
    described: Mapping[str, Any], schemas: Mapping[str, Any]
) -> tuple[str | None, str, str | None]:
    """Schema of the data of a response, its envelope and its paging."""
    success = next(response for status, response in described["responses"].items() if status.startswith("2"))
    content = success.get("content", {})
    if not content:
        return None, "none", None
    if "application/json" not in content:
        return None, "bytes", None
    schema: Mapping[str, Any] = content["application/json"]["schema"]
    data = schema.get("properties", {}).get("data")
    envelope = "bare" if data is None else "data"
    item: Mapping[str, Any] = schema if data is None else data
    paging = None
    if item.get("type") == "array":
        meta = schema["properties"].get("meta", {}).get("$ref", "")
        item, paging = item["items"], "cursor" if meta.endswith("KeysetMeta") else "page"
    elif schemas[item["$ref"].removeprefix(_REF)].get("type") == "array":
        item, paging = schemas[item["$ref"].removeprefix(_REF)]["items"], "whole"
    return item["$ref"].removeprefix(_REF), envelope, paging


def _argument(name: str) -> str:
    """Name of a field as an argument; the client removes the underscore again."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _class_name(operation_id: str) -> str:
    return "".join(word.title() for word in operation_id.split("_")) + "Fields"


class _Schemas:
    """Schemas that are used, and the group of each."""

    def __init__(self, schemas: Mapping[str, Any], names: Mapping[str, str], groups: Iterable[str]) -> None:
        self._schemas, self._names = schemas, names
        self._users: dict[str, set[str]] = {}
        assert SHARED not in groups
        self.places: dict[str, str] = {}

    def use(self, group: str, root: Any) -> None:
        """Note that a group uses what a schema refers to, and all that this refers to."""
        waiting = list(_references(root))
        while waiting:
            name = waiting.pop()
            users = self._users.setdefault(name, set())
            if group not in users:
                users.add(group)
                waiting += _references(self._schemas[name])

    def placed(self) -> dict[str, Any]:
        """All schemas in use by ``group.Name``; then `places` has that of each."""
        for name, users in self._users.items():
            self.places[name] = f"{next(iter(users)) if len(users) == 1 else SHARED}.{self._names[name]}"
        return {place: self.bare(self._schemas[name]) for name, place in sorted(self.places.items())}

    def bare(self, schema: Any) -> Any:
        """Return a schema without rules, and with references to the places of the others."""
        if isinstance(schema, list):
            return [self.bare(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        kept: dict[str, Any] = {}
        for key, value in schema.items():
            if key == "$ref":
                kept[key] = _REF + self.places[value.removeprefix(_REF)]
            elif key == "properties":
                kept[key] = {name: self.bare(item) for name, item in value.items()}
            elif key == "additionalProperties" and isinstance(value, dict):
                kept[key] = self.bare(value)
            elif key == "description":
                kept[key] = re.sub(r"\s+", " ", value)
            elif key not in _RULES and not (key == "format" and value == "uuid"):
                kept[key] = self.bare(value)
        return kept


def _references(schema: Any) -> Iterator[str]:
    """Names of the schemas to which a schema refers itself."""
    if isinstance(schema, list):
        for item in schema:
            yield from _references(item)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield value.removeprefix(_REF)
            else:
                yield from _references(value)
