"""The documents of the streams: whole, served, and the same in docs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from api.openapi.asyncapi import asyncapi_document, stream_documents
from media.streams.schemas import FRAMES, schema_document
from tests.unit.api.client import Client

DOCS = Path(__file__).parents[4] / "docs" / "streams"
DOCUMENT = asyncapi_document()


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (value for name, value in node.items() if name == "$ref")
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from references(item)


def followed(reference: str) -> Any:
    node: Any = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        node = node[part]
    return node


def test_every_protocol_is_a_channel_with_two_operations() -> None:
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert list(DOCUMENT["channels"]) == list(FRAMES)
    for dialect, frames in FRAMES.items():
        for action, named in (("send", frames.to_agent), ("receive", frames.from_agent)):
            operation = DOCUMENT["operations"][f"{dialect}_{action}"]
            assert (operation["action"], operation["channel"]["$ref"]) == (action, f"#/channels/{dialect}")
            messages = [followed(followed(item["$ref"])["$ref"]) for item in operation["messages"]]
            audio = ["audio"] if frames.binary_audio else []
            assert [message["name"] for message in messages] == [*named, *audio]
            shown = [message["payload"] for message in messages[: len(named)]]
            assert shown == list(named.values())


def test_references_lead_somewhere() -> None:
    found = set(references(DOCUMENT))
    assert found
    for reference in found:
        assert isinstance(followed(reference), dict)


@pytest.mark.parametrize("dialect", FRAMES)
def test_schemas_are_schemas(dialect: str) -> None:
    document = schema_document(dialect)
    jsonschema_rs.meta.validate(document)
    jsonschema_rs.Draft202012Validator(document)


@pytest.mark.parametrize("name", stream_documents())
def test_the_docs_have_them(name: str) -> None:
    written, made = json.loads((DOCS / name).read_text()), stream_documents()[name]
    for document in (written, made):
        # The version is that of the installed distribution, which a checkout alone does not have.
        document.get("info", {}).pop("version", None)
    assert written == made, "run python -m api.openapi.asyncapi"


async def test_they_are_served_to_everybody(client: Client) -> None:
    for name, document in stream_documents().items():
        answer = await client.get(f"/{name}", key=None)
        assert (answer.status, answer.json()) == (200, document)
    unknown = await client.get("/schemas/streams/carrier_pigeon.json", key=None)
    assert unknown.status == 404 and "exotel" in unknown.json()["error"]["message"]
