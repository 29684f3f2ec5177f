"""Control characters in what people name and write: refused by field, in every service."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.api_facts import ACCOUNT, KEY, MESSAGING_KEY, NUMBER_ID
from tests.unit.api.client import Client

_IN_A_LINE = "must not contain control characters or line breaks"
_IN_A_TEXT = "must not contain control characters other than tabs and line breaks"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/api/v1/contact-lists", {"name": "a{}b"}, "name"),
        ("/api/v1/contacts", {"phoneNumber": "+919876543210", "firstName": "a{}b"}, "firstName"),
        ("/api/v1/contacts", {"phoneNumber": "+919876543210", "lastName": "a{}b"}, "lastName"),
        ("/v1/trunk-portal/carriers", {"name": "a{}b"}, "name"),
        ("/v1/trunk-portal/applications", {"name": "a{}b", "target": "webhook"}, "name"),
        ("/v1/phone-numbers/" + NUMBER_ID, {"friendly_name": "a{}b"}, "friendly_name"),
        ("/v1/keys", {"name": "a{}b", "service": "platform"}, "name"),
        ("/v1/calls", {"tag": "a{}b"}, "tag"),
    ],
)
@pytest.mark.parametrize("character", ["\x07", "\x1b", "\n", "\x7f", "\x85", "\u2028"])
async def test_names_are_one_line(
    client: Client, path: str, body: dict[str, Any], field: str, character: str
) -> None:
    written = {name: value.format(character) for name, value in body.items()}
    key = MESSAGING_KEY if path.startswith("/api/v1") else KEY
    method = "PATCH" if NUMBER_ID in path else "POST"
    answer = await client.request(method, path, json_body=written, key=key)
    errors = answer.json().get("details", answer.json().get("error"))
    errors = errors["errors"] if "errors" in errors else errors["details"]["errors"]
    assert answer.status == 400
    assert {"field": field, "message": _IN_A_LINE} in errors


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("notes", "a\x00b"),
        ("notes", "a\x08b"),
        ("notes", "a\x9bb"),
        ("customFields", {"a": {"b": ["\x1b[2J"]}}),
        ("customFields", {"a\x1b": 1}),
    ],
)
async def test_texts_have_no_control_characters(client: Client, field: str, value: Any) -> None:
    body = {"phoneNumber": "+919876543210", field: value}
    answer = await client.post("/api/v1/contacts", body, key=MESSAGING_KEY)
    (error,) = answer.json()["details"]["errors"]
    nul = "\0" in str(value)
    assert (answer.status, error["field"]) == (400, field)
    assert error["message"] == ("must not contain NUL or lone surrogate characters" if nul else _IN_A_TEXT)


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        ("/v1/calls", {"tag": "a\0", "verbs": [{"verb": "say", "text": "\ud800"}]}, ["tag", "verbs[0].text"]),
        ("/v1/calls", {"headers": {"a\0": 1, "b": "\0"}}, ["headers", "headers.b"]),
        ("/v1/calls", {"tag": [[["\0"]]], "to": json.loads("[" * 500 + "]" * 500)}, ["tag[0][0][0]"]),
        ("/v1/calls", {"a\0": 1}, ["body"]),
        ("/v1/calls", ["a\0"], ["body[0]"]),
        ("/v1/calls", {"x" * 200: "\0"}, ["x" * 100 + "..."]),
        ("/v1/masking/calls", {"party_a": "\0"}, ["party_a"]),
    ],
)
async def test_what_no_database_stores_is_named(
    client: Client, path: str, body: Any, fields: list[str]
) -> None:
    answer = await client.post(path, body)
    assert (answer.status, list(answer.fields)) == (400, fields)


async def test_a_form_names_what_holds_nul(client: Client) -> None:
    body, kind = b"To=a%00&From=b&St%00atus=c", {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await client.post(f"/2010-04-01/Accounts/{ACCOUNT}/Calls.json", body=body, headers=kind)
    assert [error["field"] for error in answer.json()["details"]["errors"]] == ["To", "body"]


async def test_texts_may_have_lines_and_tabs(client: Client) -> None:
    body = {"phoneNumber": "+919876543210", "notes": "first\r\n\tsecond"}
    answer = await client.post("/api/v1/contacts", body, key=MESSAGING_KEY)
    assert (answer.status, answer.data["notes"]) == (201, "first\r\n\tsecond")


async def test_a_search_has_none_either(client: Client) -> None:
    answer = await client.get("/api/v1/contacts?search=%1B", key=MESSAGING_KEY)
    assert answer.status == 400
    assert answer.json()["details"]["errors"] == [{"field": "search", "message": _IN_A_TEXT}]
