"""
JSON Schemas of tools: validation of the schemas, and of arguments against them.

A schema comes from a customer and runs in this process, so its cost is bounded: nothing is fetched,
references stay within the schema and never form cycles, patterns are matched in linear time, and the work of
a check is limited by the size of both schema and arguments.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

from callcontrol.errors import FieldError, ValidationFailed

MAX_SCHEMA_CHARS: Final = 16 * 1024
MAX_ARGUMENT_CHARS: Final = 64 * 1024

_MAX_NODES: Final = 1000
_MAX_PATTERNS: Final = 32
# Subschemas and entries of lists times characters of the checked value: a tenth of a second at worst.
_MAX_WORK: Final = 8_000_000
# Up to here every error is named: each error is an object that has a copy of its value, and all of them are
# created at once.
_MAX_NAMED_WORK: Final = 1_000_000
_MAX_NAMED_PLACES: Final = 5000
_MAX_NAMED_VALUES: Final = 300
# Every accepted schema leaves room for arguments of some hundred characters.
_MAX_WEIGHT: Final = 20_000
_MAX_ERRORS: Final = 20
_MAX_MESSAGE_CHARS: Final = 300
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
# Memory of a compiled pattern, and of its matching cache; schemas in use are cached.
_PATTERN_BYTES: Final = 64 * 1024
_KEPT_SCHEMAS: Final = 128
_REFERENCE: Final = "#/$defs/"
_UNREADABLE: Final = "must be JSON that is not nested too deep"
_REFERRED: Final = re.compile(r"[^/~%]+")
"""Names that are spelled in a reference as they are written."""

# Measured cost of a keyword beside the subschema itself: exact division of large numbers, and a schema that
# asks for the properties or items that its subschemas have evaluated, for which they are checked again.
_DIVISION_WEIGHT: Final = 500
_AGAIN_WEIGHT: Final = 3

# Keywords that give a schema another address, or find a schema by other means than its place.
_REFUSED: Final = frozenset(
    {"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"}
)
_AGAIN: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_ONE: Final = (
    *("items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"),
    *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
_MANY: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_LIMITS: Final = {
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
}
UUID_PATTERN: Final = "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
"""Pattern of identifiers, for which errors have a word."""

_NAMED: Final = ("properties", "patternProperties", "dependentSchemas")


class CheckedSchema:
    """An accepted schema, which finds the errors of a value."""

    def __init__(self, schema: Mapping[str, Any], weight: int) -> None:
        self._validator = _validator(schema)
        self._weight = weight

    def errors(self, value: Any, root: str, max_chars: int = MAX_ARGUMENT_CHARS) -> list[FieldError]:
        """The first twenty errors of a value, each by its path below ``root``."""
        try:
            size = len(json.dumps(value, ensure_ascii=False))
            if size > max_chars:
                return [FieldError(root, f"must not be longer than {max_chars} characters of JSON")]
            if size * self._weight > _MAX_WORK:
                return [FieldError(root, "is too long for a schema of this size")]
            if self._validator.is_valid(value):
                return []
            if size * self._weight > _MAX_NAMED_WORK or self._is_long(_places(value)):
                return [FieldError(root, "does not fit the schema, and is too long to say where")]
            found = self._validator.iter_errors(value)
            named = (error for one in found for error in _named(one, root))
            return [error for error, _ in zip(named, range(_MAX_ERRORS), strict=False)]
        except (ValueError, RecursionError, TypeError):
            return [FieldError(root, _UNREADABLE)]

    def _is_long(self, values: int) -> bool:
        return values > _MAX_NAMED_VALUES or values * self._weight > _MAX_NAMED_PLACES


def checked_schema(schema: Mapping[str, Any], field: str) -> CheckedSchema:
    """
    Validate a schema.

    Raises:
        ValidationFailed: It is no JSON Schema of draft 2020-12 for objects, is too large, refers to something
            outside of it or to itself, or has a pattern that cannot be matched in linear time.
    """
    try:
        text = json.dumps(schema)
    except (ValueError, RecursionError):
        raise ValidationFailed.of(field, _UNREADABLE) from None
    return _checked(text, field)


@lru_cache(maxsize=_KEPT_SCHEMAS)
def _checked(text: str, field: str) -> CheckedSchema:
    if len(text) > MAX_SCHEMA_CHARS:
        raise ValidationFailed.of(field, f"must not be longer than {MAX_SCHEMA_CHARS} characters of JSON")
    schema = json.loads(text)
    if schema.get("type") != "object":
        raise ValidationFailed.of(f"{field}.type", "must be object")
    if schema.get("$schema", _DRAFT) not in (_DRAFT, f"{_DRAFT}#"):
        raise ValidationFailed.of(f"{field}.$schema", f"must be {_DRAFT}, or left out")
    try:
        return CheckedSchema(schema, _Counter(schema).weight())
    except _Refusal as refusal:
        raise ValidationFailed.of(field, str(refusal)) from None
    except ValidationError as error:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
        problem = "must be a valid JSON Schema"
        if place.endswith(".pattern") or ".patternProperties" in place:
            problem = "must be a regular expression without lookaround and references, and not too large"
        raise ValidationFailed.of(f"{field}{place}"[:_MAX_MESSAGE_CHARS], problem) from None
    except (ValueError, RecursionError):
        raise ValidationFailed.of(field, _UNREADABLE) from None


def _validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    return Draft202012Validator(
        dict(schema),
        # Errors are shown to people and logged, so they must not repeat the given values.
        mask="it",
        offline=True,
        pattern_options=RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES),
    )


class _Refusal(Exception):
    """The schema is not accepted; the message names the reason."""


class _Counter:
    """
    Counts the possible work of a check.

    It counts subschemas, those behind references at each reference, and the entries of lists that a value is
    compared with.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._left = _MAX_NODES
        self._patterns = _MAX_PATTERNS
        self._weight = 0
        self._under_way: list[str] = []

    def weight(self) -> int:
        """
        The weight of the schema.

        Raises:
            _Refusal: The weight is too large, or a reference is not allowed.
        """
        self._visit(self._schema, 1)
        for one in _values(self._schema.get("$defs")):
            self._visit(one, 1)
        if self._weight > _MAX_WEIGHT:
            raise _Refusal(
                "must have fewer multipleOf, and nest unevaluatedProperties and unevaluatedItems less"
            )
        return self._weight

    def _visit(self, schema: object, times: int) -> None:
        self._left -= 1
        self._weight += times
        if self._left < 0:
            raise _Refusal(
                f"must not have more than {_MAX_NODES} subschemas, counted at each reference to them"
            )
        if not isinstance(schema, Mapping):
            return
        self._patterns -= ("pattern" in schema) + len(list(_values(schema.get("patternProperties"))))
        if self._patterns < 0:
            raise _Refusal(f"must not have more than {_MAX_PATTERNS} patterns")
        refused = _REFUSED & schema.keys()
        if refused:
            raise _Refusal(f"must not have the keyword {min(refused)}")
        if schema is not self._schema and "$defs" in schema:
            raise _Refusal("must have its $defs at the top")
        self._weight += times * _own_weight(schema)
        if not _AGAIN.isdisjoint(schema):
            times *= _AGAIN_WEIGHT
        if "$ref" in schema:
            self._follow(schema["$ref"], times)
        for child in _children(schema):
            self._visit(child, times)

    def _follow(self, reference: object, times: int) -> None:
        definitions = self._schema.get("$defs")
        target = reference if isinstance(reference, str) else ""
        name = target.removeprefix(_REFERENCE)
        if name == target or not isinstance(definitions, Mapping) or name not in definitions:
            raise _Refusal("must refer to nothing but its own $defs: #/$defs/NAME")
        if _REFERRED.fullmatch(name) is None:
            raise _Refusal("must refer to no names with /, ~ or %")
        if name in self._under_way:
            raise _Refusal(f"must not refer to itself, as $defs.{name[:100]} does")
        self._under_way.append(name)
        self._visit(definitions[name], times)
        self._under_way.pop()


def _children(schema: Mapping[str, Any]) -> Iterator[object]:
    for keyword in _ONE:
        if keyword in schema:
            yield schema[keyword]
    for keyword in _MANY:
        if isinstance(schema.get(keyword), list):
            yield from schema[keyword]
    for keyword in _NAMED:
        yield from _values(schema.get(keyword))


def _own_weight(schema: Mapping[str, Any]) -> int:
    """Cost of the keywords of a schema that are not subschemas."""
    lists = [schema.get("enum"), schema.get("required"), *_values(schema.get("dependentRequired"))]
    entries = sum(len(entries) for entries in lists if isinstance(entries, list))
    return entries + _DIVISION_WEIGHT * ("multipleOf" in schema)


def _places(value: object) -> int:
    """Number of values in a value, including itself."""
    if isinstance(value, Mapping):
        return 1 + sum(map(_places, value.values()))
    return 1 + sum(map(_places, value)) if isinstance(value, list) else 1


def _values(named: object) -> Iterator[object]:
    if isinstance(named, Mapping):
        yield from named.values()


def _named(error: ValidationError, root: str) -> Iterator[FieldError]:
    """The errors of a field: a missing field, an unknown field, or a wrong value."""
    place = root + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
    )
    facts = error.kind.as_dict()
    match error.kind.name:
        case "required":
            yield FieldError(f"{place}.{facts['property']}", "is required")
        case "additionalProperties" | "unevaluatedProperties":
            for name in facts["unexpected"][:_MAX_ERRORS]:
                yield FieldError(f"{place}.{name[:100]}", "is not a known argument")
        case "type":
            yield FieldError(place, f"must be of type {' or '.join(map(str, facts['types']))}")
        case "enum":
            yield FieldError(place, _short(f"must be one of {', '.join(map(str, facts['options']))}"))
        case "pattern":
            kind = "a UUID" if facts["pattern"] == UUID_PATTERN else f"of the form {facts['pattern']}"
            yield FieldError(place, _short(f"must be {kind}"))
        case "minLength" | "maxLength" | "minimum" | "maximum":
            limit = facts["limit"]
            message = _LIMITS[error.kind.name].format(limit)
            yield FieldError(place, message.removesuffix("s") if limit == 1 else message)
        case "falseSchema":
            yield FieldError(place, "must not be given, or has arguments that it does not know")
        case _:
            yield FieldError(place, _short(error.message))


def _short(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE_CHARS else message[: _MAX_MESSAGE_CHARS - 3] + "..."
