"""
JSON Schemas of every frame of every dialect: those that agents get, and those that they may send.

They are the one source for the served documents, for those in docs, and for the tests, which validate the
dialects' frames by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from media.streams.schemas.asterisk import ASTERISK, ASTERISK_JSON
from media.streams.schemas.frames import EXOTEL, JAMBONZ, PLIVO, TELNYX, TWILIO, VOBIZ, VONAGE
from media.streams.schemas.parts import COMMANDS, Frames, Schema

__all__ = ["COMMANDS", "FRAMES", "Frames", "Schema", "schema_document"]

FRAMES: Mapping[str, Frames] = MappingProxyType(
    {
        "exotel": EXOTEL,
        "twilio": TWILIO,
        "vonage": VONAGE,
        "plivo": PLIVO,
        "vobiz": VOBIZ,
        "jambonz": JAMBONZ,
        "telnyx": TELNYX,
        "asterisk": ASTERISK,
        "asterisk_json": ASTERISK_JSON,
    }
)


def schema_document(dialect: str) -> Schema:
    """
    Return the JSON Schema of a dialect's text frames, of those sent to agents and those that agents send.

    `$defs.ToAgent` and `$defs.FromAgent` are the schemas of one direction.
    """
    frames = FRAMES[dialect]
    definitions: dict[str, Schema] = {}
    directions = {"ToAgent": frames.to_agent, "FromAgent": frames.from_agent}
    for direction, named in directions.items():
        definitions |= {f"{direction}.{name}": schema for name, schema in named.items()}
        definitions[direction] = {"anyOf": [{"$ref": f"#/$defs/{direction}.{name}"} for name in named]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Text frames of the stream protocol {dialect}",
        "description": frames.description,
        "anyOf": [{"$ref": f"#/$defs/{direction}"} for direction in directions],
        "$defs": definitions,
    }
