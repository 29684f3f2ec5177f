"""Arbitrary input to every request model: it is taken, or every wrong field of it is named."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.body import parse_json
from api.routes import ENDPOINTS
from api.schemas.base import Reach, RequestModel, validate_body, validate_query
from callcontrol.egress.url_policy import check_url
from callcontrol.errors import BindFailed, ValidationFailed
from callcontrol.instructions.verbs import VerbRules

BODIES = sorted({endpoint.body for endpoint in ENDPOINTS}, key=lambda model: model.__name__)
QUERIES = sorted({endpoint.query for endpoint in ENDPOINTS}, key=lambda model: model.__name__)

NOWHERE = Reach(
    VerbRules({"IN"}, frozenset(), partial(check_url, allow_private=False)), lambda host, port: False
)

WORDS = st.sampled_from(
    [
        "",
        "sip:a@strange.example",
        "https://10.0.0.1/",
        "+918047000001",
        "wss://x/y",
        "media_stream",
        "play",
        "dial",
        "2026-01-31",
        "true",
        "17",
        "udp",
        "x" * 3000,
    ]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | WORDS
KEYS = st.sampled_from(
    ["verb", "url", "target", "type", "number", "sip_uri", "digits", "length", "username", "token"]
) | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def fields_of(model: type[RequestModel]) -> st.SearchStrategy[str]:
    names = [field.alias or name for name, field in model.model_fields.items()]
    return st.sampled_from([*names, *model.not_accepted]) if names or model.not_accepted else st.nothing()


def check_refusal(refusal: ValidationFailed | BindFailed) -> None:
    assert refusal.errors
    for error in refusal.errors:
        assert error.field and len(error.field) < 500
        assert error.message and len(error.message) < 500
    json.dumps(refusal.details).encode()


@pytest.mark.parametrize("model", BODIES, ids=lambda model: model.__name__)
@given(data=st.data())
def test_bodies(model: type[RequestModel], data: st.DataObject) -> None:
    body = data.draw(st.dictionaries(fields_of(model) | st.text(max_size=5), VALUES, max_size=8) | VALUES)
    try:
        taken = validate_body(model, body, NOWHERE)
    except (ValidationFailed, BindFailed) as refusal:
        check_refusal(refusal)
    else:
        assert isinstance(taken, model)


@pytest.mark.parametrize("model", QUERIES, ids=lambda model: model.__name__)
@given(data=st.data())
def test_queries(model: type[RequestModel], data: st.DataObject) -> None:
    texts = WORDS | st.text(max_size=20)
    query = data.draw(st.dictionaries(fields_of(model) | st.text(max_size=5), texts, max_size=6))
    try:
        taken = validate_query(model, query.items())
    except ValidationFailed as refusal:
        check_refusal(refusal)
    else:
        assert isinstance(taken, model)


def test_booleans_of_queries_are_true_or_false() -> None:
    found = [
        (model, field.alias or name)
        for model in QUERIES
        for name, field in model.model_fields.items()
        if "bool" in repr(field.annotation)
    ]
    assert len(found) >= 4
    for model, name in found:
        for text in ("1", "0", "yes", "no", "on", "off", "t", "f", "y", "n", "True", "FALSE", " true", ""):
            with pytest.raises(ValidationFailed) as refusal:
                validate_query(model, [(name, text)])
            errors = {error.field: error.message for error in refusal.value.errors}
            assert errors.get(name) == "must be true or false", (model.__name__, name, text)
        for text in ("true", "false"):
            try:
                validate_query(model, [(name, text)])
            except ValidationFailed as other:
                assert name not in {error.field for error in other.errors}


@given(st.binary(max_size=200) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_json_bodies(body: bytes) -> None:
    try:
        value: Any = parse_json(body)
    except ValidationFailed as refusal:
        check_refusal(refusal)
    else:
        json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"5.0", 5),
        (b"5e2", 500),
        (b"-0.0", 0),
        (b"0.5", 0.5),
        (b"1e300", 1e300),
        (b"9007199254740993.0", 2.0**53),
    ],
)
def test_a_number_that_is_whole_is_read_as_whole(text: bytes, value: float) -> None:
    read = parse_json(text)
    assert read == value
    assert isinstance(read, int) == (value == int(value) and abs(value) <= 2**53)


def test_a_number_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValidationFailed, match="too large"):
        parse_json(b'{"timeout": 1e999}')
