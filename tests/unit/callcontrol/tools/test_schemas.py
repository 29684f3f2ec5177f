"""Accepted JSON Schemas of tools, and the errors of arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.errors import ValidationFailed
from callcontrol.tools.builtin import BUILTIN
from callcontrol.tools.schemas import MAX_ARGUMENT_CHARS, UUID_PATTERN, checked_schema

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "pattern": r"^\+[0-9]+$"},
        "count": {"type": "integer", "minimum": 1},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "mode": {"enum": ["fast", "slow"]},
    },
    "required": ["to"],
    "additionalProperties": False,
    "$defs": {
        "line": {
            "type": "object",
            "properties": {"sku": {"type": "string"}},
            "required": ["sku"],
            "additionalProperties": False,
        }
    },
}


def wrong(schema: dict[str, Any], value: Any) -> dict[str, str]:
    """Return the errors of a value, by field."""
    return {error.field: error.message for error in checked_schema(schema, "input_schema").errors(value, "a")}


def refusal(schema: dict[str, Any]) -> dict[str, str]:
    """Return the errors of a schema, by field; nothing when it is accepted."""
    try:
        checked_schema(schema, "input_schema")
    except ValidationFailed as caught:
        return {error.field: error.message for error in caught.errors}
    return {}


def test_arguments_that_fit_are_taken() -> None:
    assert wrong(ORDER, {"to": "+91", "count": 2, "lines": [{"sku": "x"}], "mode": "fast"}) == {}
    assert wrong(ORDER, {"to": "+91", "count": 2.0}) == {}


def test_every_wrong_argument_is_named_by_its_path() -> None:
    given_ = {"count": 0, "lines": [{}, {"sku": 1, "more": 2}, 3], "mode": "odd", "colour": "red"}
    found = wrong(ORDER, given_)
    assert found == {
        "a.to": "is required",
        "a.count": "must be at least 1",
        "a.lines[0].sku": "is required",
        "a.lines[1].sku": "must be of type string",
        "a.lines[1].more": "is not a known argument",
        "a.lines[2]": "must be of type object",
        "a.mode": "must be one of fast, slow",
        "a.colour": "is not a known argument",
    }


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        ({"minLength": 4}, "x", "must have at least 4 characters"),
        ({"maxLength": 4}, "xxxxx", "must have at most 4 characters"),
        ({"minimum": 3}, 1, "must be at least 3"),
        ({"maximum": 3}, 9, "must be at most 3"),
        ({"pattern": UUID_PATTERN}, "x", "must be a UUID"),
        ({"pattern": "^[0-9]+$"}, "x", "must be of the form ^[0-9]+$"),
    ],
)
def test_what_is_wrong_is_a_requirement(rule: dict[str, Any], value: Any, message: str) -> None:
    assert wrong({"type": "object", "properties": {"to": rule}}, {"to": value}) == {"a.to": message}


def test_what_was_given_is_never_repeated() -> None:
    for value in ({"to": "s3cret"}, {"to": ["s3cret"]}, {"to": "+91", "count": "s3cret"}):
        assert "s3cret" not in json.dumps(wrong(ORDER, value))


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_the_schemas_of_built_in_tools_are_taken(name: str) -> None:
    tool = BUILTIN[name]
    assert refusal(dict(tool.input_schema)) == {}
    assert tool.output_schema is not None and refusal(dict(tool.output_schema)) == {}
    assert tool.title and len(tool.description) > 40


def _doubling(levels: int) -> dict[str, Any]:
    """A schema whose every definition holds the one before twice."""
    definitions: dict[str, Any] = {"d0": {"type": "string"}}
    for level in range(1, levels):
        definitions[f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    return {
        "type": "object",
        "properties": {"x": {"$ref": f"#/$defs/d{levels - 1}"}},
        "$defs": definitions,
    }


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        pytest.param({}, "input_schema.type", id="no-type"),
        pytest.param({"type": "array"}, "input_schema.type", id="an-array"),
        pytest.param(
            {"type": "object", "$schema": "http://elsewhere/"}, "input_schema.$schema", id="dialect"
        ),
        pytest.param(
            {"type": "object", "properties": {"x": {"type": "strin"}}},
            "input_schema.properties.x.type",
            id="type",
        ),
        pytest.param({"type": "object", "properties": 3}, "input_schema.properties", id="no-properties"),
        pytest.param(
            {"type": "object", "properties": {"x": {"pattern": "(?=a)b"}}},
            "input_schema.properties.x.pattern",
            id="lookahead",
        ),
        pytest.param(
            {"type": "object", "properties": {"x": {"pattern": "(a{1000}){1000}"}}},
            "input_schema.properties.x.pattern",
            id="huge-pattern",
        ),
        *(
            pytest.param({"type": "object", "properties": {"x": {"$ref": target}}}, "input_schema", id=name)
            for name, target in {
                "over-http": "http://127.0.0.1:1/schema.json",
                "of-a-file": "file:///etc/passwd",
                "to-itself": "#",
                "to-nothing": "#/$defs/none",
                "to-a-property": "#/properties/x",
            }.items()
        ),
        pytest.param(
            {"type": "object", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}},
            "input_schema",
            id="recursive",
        ),
        pytest.param(
            {"type": "object", "properties": {"x": {"$id": "http://a.example/"}}},
            "input_schema",
            id="another-id",
        ),
        pytest.param({"type": "object", "$dynamicRef": "http://a.example/"}, "input_schema", id="dynamic"),
        pytest.param(
            {"type": "object", "properties": {f"p{i}": {"pattern": f"^{i}$"} for i in range(33)}},
            "input_schema",
            id="many-patterns",
        ),
        pytest.param(_doubling(30), "input_schema", id="exponential"),
        pytest.param({"type": "object", "description": "x" * 20_000}, "input_schema", id="too-long"),
    ],
)
def test_schemas_that_cost_or_reach_too_far_are_refused(schema: dict[str, Any], field: str) -> None:
    assert list(refusal(schema)) == [field]


def test_a_property_may_be_called_like_a_keyword() -> None:
    assert refusal({"type": "object", "properties": {"$id": {"type": "string"}, "$ref": {}}}) == {}


def test_arguments_are_bounded_by_themselves_and_by_the_schema() -> None:
    assert list(wrong(ORDER, {"to": "+" + "9" * MAX_ARGUMENT_CHARS})) == ["a"]
    many = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(400)}}
    assert wrong(many, {"p0": "x"}) == {}
    assert wrong(many, {"p0": "x" * 30_000}) == {"a": "is too long for a schema of this size"}


def test_what_is_no_json_is_refused_and_nothing_breaks() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert list(wrong(ORDER, deep)) == ["a"]
    assert wrong(ORDER, {"to": "\ud800"})


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from([*ORDER["properties"], "colour"]), _JSON, max_size=5))
def test_any_arguments_are_judged_without_a_failure(value: dict[str, Any]) -> None:
    for field, message in wrong(ORDER, value).items():
        assert field.startswith("a") and message


@given(
    st.dictionaries(
        st.sampled_from(["type", "properties", "items", "$ref", "allOf", "$defs", "pattern"]), _JSON
    )
)
def test_any_schema_is_taken_or_refused(schema: dict[str, Any]) -> None:
    for field in refusal({"type": "object", **schema}):
        assert field.startswith("input_schema")


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        pytest.param(
            _object(x={"items": {"required": [f"a{number}" for number in range(1500)]}}),
            {"x": [{}] * 1500},
            id="a-million-missing",
        ),
        pytest.param(
            _object(
                x={"items": {"anyOf": [{"type": "string", "minLength": size} for size in range(20, 110)]}}
            ),
            {"x": ["b"] * 12_000},
            id="a-million-alternatives",
        ),
        pytest.param(
            {"type": "object", "propertyNames": {"pattern": "^x"}},
            {f"k{number}": 1 for number in range(5000)},
            id="thousands-of-names",
        ),
    ],
)
def test_what_is_wrong_in_a_million_ways_is_refused_in_one(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    (problem,) = wrong(schema, arguments).values()
    assert "too long" in problem


def _nested(deep: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {"a": {}}}
    for _ in range(deep):
        schema = {"anyOf": [schema], "unevaluatedProperties": {}}
    return {"type": "object", **schema}


def _doubled_behind_names_that_look_like_places() -> dict[str, Any]:
    definitions: dict[str, Any] = {"d40": {"allOf": [{}]}, "d40/allOf/0": {}}
    for number in range(40):
        following = {"$ref": f"#/$defs/d{number + 1}/allOf/0"}
        definitions[f"d{number}"] = {"allOf": [{"allOf": [following, following]}]}
        definitions[f"d{number}/allOf/0"] = {}
    return {**_object(x={"$ref": "#/$defs/d0"}), "$defs": definitions}


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return _object(x=schema)


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        pytest.param(_nested(30), "input_schema", id="checked-again-at-each-level"),
        pytest.param(_doubled_behind_names_that_look_like_places(), "input_schema", id="names-like-places"),
        pytest.param(_object(x={"allOf": [{"multipleOf": 0.5}] * 100}), "input_schema", id="divisions"),
        pytest.param(_deep(900), "input_schema", id="deep"),
        pytest.param({**_object(), "more": _deep(2000)}, "input_schema", id="deep-where-nobody-looks"),
        pytest.param(_object(**{"\ud800": {}}), "input_schema", id="half-a-character"),
        pytest.param({**_object(), "$schema": 5}, "input_schema.$schema", id="numbered-draft"),
    ],
)
def test_a_schema_that_would_cost_too_much_or_cannot_be_read_is_refused(
    schema: dict[str, Any], field: str
) -> None:
    assert list(refusal(schema)) == [field]
