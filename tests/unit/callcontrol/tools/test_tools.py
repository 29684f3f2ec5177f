"""Tools that accounts define, answers of their servers, and usage, without I/O."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.accounts.keys import scopes_of, tool_scopes, tools_of
from callcontrol.errors import ValidationFailed
from callcontrol.tools.answers import AnswerUnreadable, queried, read_answer, shown
from callcontrol.tools.definitions import HttpTool, changed_tool, new_tool
from callcontrol.tools.models import ToolAnnotations, ToolResult
from callcontrol.tools.usage import Usage

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LATER = datetime(2026, 2, 1, 12, tzinfo=UTC)
VALUES = {"name": "find_order", "description": "Finds an order.", "url": "https://shop.example/tools"}


def make(**changes: Any) -> HttpTool:
    return new_tool("t1", "acc", {**VALUES, **changes}, secret="whsec_c2VjcmV0", now=NOW)


def wrong(**changes: Any) -> list[str]:
    with pytest.raises(ValidationFailed) as caught:
        make(**changes)
    return [error.field for error in caught.value.errors]


def test_a_tool_has_defaults_that_do_no_harm() -> None:
    tool = make()
    assert (tool.title, tool.method, tool.timeout_s, tool.sends_body) == ("find_order", "POST", 10, True)
    assert tool.input_schema["additionalProperties"] is False
    described = tool.described(is_enabled=False)
    assert (described.kind, described.is_enabled, described.annotations) == ("http", False, ToolAnnotations())


def test_every_wrong_field_of_a_tool_is_named() -> None:
    found = wrong(
        name="a b",
        title="",
        description="x" * 5000,
        method="TRACE",
        timeout_s=31,
        secret="short",
        headers={"Host": "a", "X A": "b", "X-Break": "a\r\nX-More: b", "webhook-id": "c"},
        input_schema={"type": "string"},
        colour="red",
    )
    assert set(found) == {
        *("name", "title", "description", "method", "timeout_s", "secret", "input_schema.type", "colour"),
        *("headers.Host", "headers.X A", "headers.X-Break", "headers.webhook-id"),
    }
    assert wrong(name="", url="") == ["name", "url"]
    assert wrong(name="place_call") == ["name"]
    assert wrong(headers={"X-A": "1", "x-a": "2"}) == ["headers.x-a"]
    assert wrong(headers={f"X-{number}": "1" for number in range(21)}) == ["headers"]


def test_a_tool_is_changed_field_by_field() -> None:
    tool = make(output_schema={"type": "object"}, headers={"X-Key": "k3y"})
    changed = changed_tool(tool, {"output_schema": None, "annotations": {"read_only": True}}, LATER)
    assert changed.output_schema is None and changed.annotations == ToolAnnotations(read_only=True)
    assert (changed.headers, changed.created_at, changed.updated_at) == ({"X-Key": "k3y"}, NOW, LATER)
    with pytest.raises(ValidationFailed) as caught:
        changed_tool(tool, {"name": "other", "url": None}, LATER)
    assert [error.field for error in caught.value.errors] == ["name", "url"]


def test_secrets_are_in_no_representation() -> None:
    tool = make(headers={"X-Key": "k3y"})
    assert "k3y" not in repr(tool) and "c2VjcmV0" not in repr(tool)


@pytest.mark.parametrize(
    ("media_type", "body", "result"),
    [
        ("application/json", b'{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ("application/problem+json", b'"x"', "x"),
        ("Text/Plain", "नमस्ते".encode(), "नमस्ते"),
        ("text/plain", b"\xff\x00a", "\ufffda"),
        ("application/json", b'"\\ud800\\u0000"', "?"),
        ("", b"", None),
        ("image/png", b"  ", None),
    ],
    ids=["object", "plus-json", "text", "broken-text", "broken-json-text", "nothing", "blank"],
)
def test_answers_are_read(media_type: str, body: bytes, result: Any) -> None:
    assert read_answer(media_type, body) == result


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/json", b"{"),
        ("application/json", b'{"a": NaN}'),
        ("application/json", b'{"a": [1e999]}'),
        ("application/json", b"[" * 40 + b"]" * 40),
        ("application/json", b"[" * 100_000),
        ("application/json", b"\xff"),
        ("application/json", b"1" * 5000),
        ("image/png", b"\x89PNG"),
        ("", b"x"),
    ],
    ids=[
        "cut",
        "nan",
        "no-finite-number",
        "deep",
        "very-deep",
        "no-utf-8",
        "long-number",
        "an-image",
        "no-type",
    ],
)
def test_answers_that_cannot_be_read_are_told(media_type: str, body: bytes) -> None:
    with pytest.raises(AnswerUnreadable):
        read_answer(media_type, body)


def test_the_beginning_of_a_refusal_is_shown() -> None:
    assert shown("application/json", b'{"error": "no such order"}') == '{"error": "no such order"}'
    assert shown("text/html", b"x" * 5000) == "x" * 1000
    assert shown("image/png", b"x") is None and shown("text/plain", b"") is None


def test_arguments_go_into_the_query() -> None:
    url = queried("https://a.example/x?key=1#top", {"q": "a b&c", "n": 2, "l": ["x", True], "o": {"k": None}})
    assert url == "https://a.example/x?key=1&q=a+b%26c&n=2&l=x&l=true&o=%7B%22k%22%3A+null%7D"


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=20), max_size=5))
def test_any_texts_come_out_of_the_query_as_they_went_in(arguments: dict[str, str]) -> None:
    try:
        url = queried("https://a.example/", arguments)
    except UnicodeEncodeError:
        return  # A lone surrogate, which bodies are refused for before.
    assert dict(parse_qsl(urlsplit(url).query, keep_blank_values=True)) == arguments


def test_usage_adds_up() -> None:
    assert Usage() + Usage(1, 0, 10, 10) + Usage(1, 1, 30, 30) == Usage(2, 1, 40, 30)
    assert Usage(2, 1, 40, 30).mean_ms == 20 and Usage().mean_ms == 0


def test_keys_are_limited_to_tools_by_their_scopes() -> None:
    assert scopes_of("tools", None) == ("tools",) and tools_of(("tools",)) is None
    assert scopes_of("tools", ["tool:place_call"]) == ("tools", "tool:place_call")
    assert tools_of(tool_scopes(["a", "b"])) == frozenset({"a", "b"})
    for scopes in (["tool:"], ["tool:a b"], ["tool:a", "admin"], []):
        with pytest.raises(ValidationFailed):
            scopes_of("tools", scopes)
    with pytest.raises(ValidationFailed):
        scopes_of("platform", ["tool:place_call"])


def test_a_result_is_shown_as_text_and_as_structure() -> None:
    assert (ToolResult({"a": "é"}).text, ToolResult({"a": 1}).structured) == ('{"a": "é"}', {"a": 1})
    assert (ToolResult("plain").text, ToolResult([1]).structured, ToolResult(None).text) == (
        "plain",
        None,
        "null",
    )
