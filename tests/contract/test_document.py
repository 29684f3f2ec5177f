"""The OpenAPI document: valid, complete, and true in its examples."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from standardwebhooks import Webhook

from api.http.endpoint import Endpoint
from api.http.errors import HTTP_STATUS, ErrorStyle, masking_code, status_of
from api.openapi.document import openapi_document
from api.openapi.examples import EXAMPLES
from api.routes import ENDPOINTS
from api.schemas.base import validate_body
from callcontrol.egress.requests import signed_headers
from callcontrol.errors import (
    AlreadyExists,
    ChannelNotConfigured,
    ProviderRejected,
    SendFailed,
    ToolFailed,
    ToolTimedOut,
)
from callcontrol.models import WebhookEvent
from tests.contract.rows import row_of

DOCUMENT = openapi_document(ENDPOINTS, (), "http://127.0.0.1:8080")
_OF_MESSAGING = (AlreadyExists, ChannelNotConfigured, ProviderRejected, SendFailed)
_OF_TOOLS = (ToolFailed, ToolTimedOut)
_OF_THE_REQUEST = (
    *("METHOD_NOT_ALLOWED", "REQUEST_TIMEOUT", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"),
    "EXPECTATION_FAILED",
)
_ENVELOPE = {"Error", "Meta", "ListMeta", "KeysetMeta", "Pagination"}
WITH_BODY = [endpoint for endpoint in ENDPOINTS if endpoint.reads_body]


def operation(endpoint: Endpoint[Any, Any]) -> dict[str, Any]:
    found = DOCUMENT["paths"][endpoint.path][endpoint.method.lower()]
    assert isinstance(found, dict)
    return found


def test_the_document_is_valid() -> None:
    schemathesis.openapi.from_dict(DOCUMENT).validate()
    for name, schema in DOCUMENT["components"]["schemas"].items():
        jsonschema_rs.Draft202012Validator({**schema, "components": DOCUMENT["components"]})
        assert schema.get("description") or name in _ENVELOPE, name


def test_the_chapter_about_errors_has_every_code() -> None:
    text = (Path(__file__).parents[2] / "docs/api/keys.md").read_text()
    codes = {
        status_of(error, style)[1]
        for error in HTTP_STATUS
        for style in ErrorStyle
        if error not in _OF_MESSAGING or style is ErrorStyle.MESSAGING
        if error not in _OF_TOOLS or style is ErrorStyle.GENERAL
        if style is not ErrorStyle.MASKING
    }
    # The last one is told before anything of the request is known.
    assert {code for code in codes | {"BAD_REQUEST"} if f"`{code}`" not in text} == set()


def test_the_table_of_errors_has_every_status_and_code_and_no_others() -> None:
    text = (Path(__file__).parents[2] / "docs/api/keys.md").read_text()
    (table,) = re.findall(r"^\| status \| code \| meaning \|\n.*?\n\n", text, re.MULTILINE | re.DOTALL)
    shown: set[tuple[int, str]] = set()
    for row in table.strip().splitlines()[2:]:
        statuses, codes = (cell.strip() for cell in row.split("|")[1:3])
        of, names = [int(status) for status in statuses.split(", ")], re.findall(r"`([A-Z_]+)`", codes)
        shown |= set(zip(of * len(names) if len(of) == 1 else of, names, strict=True))
    declared = {
        status_of(error)
        for endpoint in ENDPOINTS
        if endpoint.style is ErrorStyle.GENERAL
        for error in endpoint.all_errors
    }
    of_the_request = zip((405, 408, 413, 415, 417), _OF_THE_REQUEST, strict=True)
    assert shown == {*declared, *of_the_request, (416, "RANGE_NOT_SATISFIABLE")}


def test_operations_have_names_of_their_own() -> None:
    names = [endpoint.name for endpoint in ENDPOINTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=row_of)
def test_every_body_has_an_example_that_is_taken(endpoint: Endpoint[Any, Any]) -> None:
    shown = operation(endpoint)["requestBody"]["content"]["application/json"]
    assert shown["example"] == EXAMPLES[endpoint.name]
    if endpoint.takes_body:
        validate_body(endpoint.body, shown["example"])
    schema = {**shown["schema"], "components": DOCUMENT["components"]}
    jsonschema_rs.Draft202012Validator(schema).validate(shown["example"])


def test_the_chapter_about_errors_has_the_codes_of_masking_and_no_others() -> None:
    text = (Path(__file__).parents[2] / "docs/api/keys.md").read_text()
    (section,) = re.findall(r"^Number masking \(.*?\n\n", text, re.MULTILINE | re.DOTALL)
    declared = {
        status_of(error, endpoint.style)[1]
        for endpoint in ENDPOINTS
        if endpoint.style is ErrorStyle.MASKING
        for error in endpoint.all_errors
    }
    of_the_request = {masking_code(code) for code in _OF_THE_REQUEST}
    assert set(re.findall(r"`([a-z_]+)`", section)) == declared | of_the_request


@pytest.mark.parametrize("name", ["create_subscription", "update_masking_settings"])
def test_a_library_of_standard_webhooks_takes_the_secrets_of_examples(name: str) -> None:
    (secret,) = (value for field, value in EXAMPLES[name].items() if field.endswith("secret"))
    event = WebhookEvent(
        event_id="e", account_sid="a", event="call.missed", url="", body=b"{}", created_at=datetime.now(UTC)
    )
    headers = signed_headers(event, [secret], int(time.time()))
    assert Webhook(secret).verify(event.body, headers) == {}


def test_there_are_no_examples_of_nothing() -> None:
    assert EXAMPLES.keys() == {endpoint.name for endpoint in WITH_BODY}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=row_of)
def test_every_answer_is_described(endpoint: Endpoint[Any, Any]) -> None:
    shown = operation(endpoint)
    assert shown["summary"] and shown["tags"] == [endpoint.tag]
    for status in ("400", "401", "403", "429", "500", "503", str(endpoint.success)):
        assert shown["responses"][status]["description"]
    assert {"206", "304", "416"} <= shown["responses"].keys() or endpoint.media_type is None
    linked = {name for name, _ in _links(shown)}
    assert linked <= {other.name for other in ENDPOINTS}


def test_what_was_made_leads_to_what_can_be_asked_of_it() -> None:
    leads = {
        endpoint.name: {name for name, _ in _links(operation(endpoint))}
        for endpoint in ENDPOINTS
        if endpoint.success == 201
    }
    assert {"get_call", "hangup_call", "update_live_call", "trace_call"} <= leads["create_call"]
    assert {"get_carrier", "update_carrier", "delete_carrier", "create_gateway"} <= leads["create_carrier"]
    parameters = dict(_links(operation(_named("create_gateway"))))["delete_gateway"]["parameters"]
    assert parameters == {
        "carrier_sid": "$request.path.carrier_sid",
        "gateway_sid": "$response.body#/data/gateway_sid",
    }


def _named(name: str) -> Endpoint[Any, Any]:
    return next(endpoint for endpoint in ENDPOINTS if endpoint.name == name)


def _links(shown: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for response in shown["responses"].values():
        yield from response.get("links", {}).items()
