"""Bodies that are a text, with the other fields in the query."""

from __future__ import annotations

import pytest

from api.http.body import TextForm
from callcontrol.errors import FieldError, ValidationFailed

FORM = TextForm("application/sdp", "sdp", "parameters", "X-")
KNOWN = {"to", "from"}


def test_the_text_the_query_and_its_entries_are_the_fields() -> None:
    query = [
        ("to", "+918047000001"),
        ("X-Order", "17"),
        ("x-team", "a b"),
        ("utm_source", "page"),
        ("sdp", "no"),
    ]
    assert FORM.parse(b"v=0\r\n", query, KNOWN) == {
        "sdp": "v=0\r\n",
        "to": "+918047000001",
        "parameters": {"Order": "17", "team": "a b"},
    }


def test_an_empty_request_has_no_fields() -> None:
    assert FORM.parse(b"", [], KNOWN) == {}


@pytest.mark.parametrize(
    ("raw", "query", "field"),
    [
        (b"v=0", [("to", "1"), ("to", "2")], "to"),
        (b"v=0", [("X-Order", "1"), ("X-Order", "2")], "X-Order"),
        (b"v=0", [("to", "1\0")], "to"),
        (b"v=0", [("X-\0", "1")], "query"),
        (b"v=0\0", [], "sdp"),
        (b"\xff", [], "sdp"),
    ],
)
def test_what_is_wrong_is_named(raw: bytes, query: list[tuple[str, str]], field: str) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        FORM.parse(raw, query, KNOWN)
    assert [error.field for error in refusal.value.errors] == [field]


def test_a_refusal_names_entries_as_the_query_does() -> None:
    refusal = ValidationFailed([FieldError("to", "is required"), FieldError("parameters.1", "is wrong")])
    assert [error.field for error in FORM.named(refusal).errors] == ["to", "X-1"]
