"""AsyncAPI 3 document of the streams to voice agents, built from the schemas of their frames."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from api.openapi.document import product_version
from media.streams.schemas import COMMANDS, FRAMES, Frames, schema_document

__all__ = ["asyncapi_document", "stream_documents"]

_INTRODUCTION = (
    "Trunkline dials the `stream_url` of a number, a call or an agent, and speaks the protocol that "
    "`stream_protocol` chooses. Each protocol is a channel; `send` is what the server sends, and `receive` "
    "what it takes."
)


def asyncapi_document() -> dict[str, Any]:
    """Describe all streams."""
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    for dialect, frames in FRAMES.items():
        sent, taken = dict(_messages(dialect, frames, "to")), dict(_messages(dialect, frames, "from"))
        messages |= sent | taken
        channels[dialect] = {
            "address": "{stream_url}",
            "title": f"stream_protocol {dialect}",
            "description": frames.description,
            "parameters": {"stream_url": {"description": "A ws:// or wss:// URL of the customer."}},
            "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in (*sent, *taken)},
            "bindings": {"ws": {"method": "GET"}},
        }
        operations[f"{dialect}_send"] = _operation("send", dialect, sent)
        operations[f"{dialect}_receive"] = _operation("receive", dialect, taken)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Trunkline streams",
            "version": product_version(),
            "description": _INTRODUCTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages},
    }


@cache
def stream_documents() -> Mapping[str, Any]:
    """All documents of streams, by their URL path without the leading slash."""
    schemas = {f"schemas/streams/{dialect}.json": schema_document(dialect) for dialect in FRAMES}
    return {"asyncapi.json": asyncapi_document(), **schemas}


def _messages(dialect: str, frames: Frames, way: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Messages of one direction by names unique to the dialect, except for the commands common to all."""
    named = frames.to_agent if way == "to" else frames.from_agent
    for name, schema in named.items():
        # Component names cannot contain a colon; some frame names do.
        word = name.replace(":", "_")
        key = f"command_{word}" if COMMANDS.get(name) is schema else f"{dialect}_{way}_agent_{word}"
        kind = "text/plain" if schema.get("type") == "string" else "application/json"
        yield key, {"name": name, "contentType": kind, "payload": schema}
    if frames.binary_audio:
        yield (
            f"{dialect}_{way}_agent_audio",
            {
                "name": "audio",
                "contentType": "application/octet-stream",
                "summary": "A binary frame of audio in the encoding of the stream.",
                "payload": {"type": "string", "format": "binary"},
            },
        )


def _operation(action: str, dialect: str, messages: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{dialect}"},
        "messages": [{"$ref": f"#/channels/{dialect}/messages/{name}"} for name in messages],
    }


def write_documents(folder: Path) -> None:
    """Write all documents of streams below a folder."""
    for name, document in stream_documents().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_documents(Path(__file__).parent.parent.parent / "docs" / "streams")
