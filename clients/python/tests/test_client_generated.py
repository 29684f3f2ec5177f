"""The generated part is what the server's OpenAPI document gives."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import trunkline_client
from client_generator.document import Part, digest_of, read_document
from client_generator.names import method_name, schema_names
from client_generator.render import resource_module
from client_generator.write import GENERATED, current_document, rendered, written_digest
from trunkline_client import generated

ROOT = Path(__file__).resolve().parents[3]
OUT_OF_DATE = "run scripts/client"


@pytest.fixture(scope="module")
def part() -> Part:
    return read_document(current_document())


def test_the_generated_part_is_of_this_document() -> None:
    assert generated.DOCUMENT == digest_of(current_document()), OUT_OF_DATE


def test_nobody_has_edited_the_generated_files() -> None:
    assert generated.FILES == written_digest(), OUT_OF_DATE


def test_the_resources_are_what_is_written_now(part: Part) -> None:
    different = [
        path for path, text in rendered(part).items() if not path.exists() or path.read_text() != text
    ]
    assert different == [], OUT_OF_DATE


def test_a_changed_document_has_another_digest() -> None:
    document = current_document()
    path = document["paths"]["/v1/calls"]
    changed = {**path, "get": {**path["get"], "summary": "Another summary"}}
    assert digest_of({**document, "paths": {**document["paths"], "/v1/calls": changed}}) != generated.DOCUMENT


def test_no_generated_module_is_for_other_clients(part: Part) -> None:
    paths = {operation.path for operation in part.operations}
    assert len(paths) > 80
    assert not [path for path in paths if path.startswith(("/2010-04-01", "/jambonz", "/integrations/mcp"))]


def test_the_generator_is_deterministic(part: Part) -> None:
    calls = [operation for operation in part.operations if operation.group == "calls"]
    assert (GENERATED / "resources" / "calls.py").read_text() == resource_module("calls", calls)
    assert {"create", "list", "get", "update", "hangup"} <= {operation.name for operation in calls}


@pytest.mark.parametrize(
    ("operation_id", "resource", "name"),
    [
        ("create_application", "applications", "create"),
        ("list_contact_lists", "contact_lists", "list"),
        ("otp_stats", "otp", "stats"),
        ("tool_usage", "tool_usage", "get"),
        ("get_call", "calls", None),
    ],
)
def test_names_of_methods(operation_id: str, resource: str, name: str | None) -> None:
    assert method_name(operation_id, resource) == name


def test_names_of_schemas_stay_distinct() -> None:
    names = schema_names(["KeyObject", "Stream", "StreamObject", "a__calls__Part", "a__chat__Part"])
    assert names == {
        **{"KeyObject": "Key", "Stream": "Stream", "StreamObject": "StreamObject"},
        **{"a__calls__Part": "CallsPart", "a__chat__Part": "ChatPart"},
    }


def test_the_version_is_that_of_the_server() -> None:
    versions = {
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["version"]
        for folder in (".", "clients/python")
    }
    assert len(versions) == 1


def test_exported_names_exist_and_are_documented() -> None:
    for name in trunkline_client.__all__:
        assert getattr(trunkline_client, name).__doc__, name
