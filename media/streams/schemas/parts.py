"""Building blocks of the dialects' schemas; the commands and events common to all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Frames:
    """
    The frames of a dialect, by name.

    Attributes:
        description: Facts that a reader needs beside the frames.
        binary_audio: True if audio is sent in binary frames, which no schema describes.
    """

    description: str
    to_agent: Mapping[str, Schema]
    from_agent: Mapping[str, Schema]
    binary_audio: bool = False


TEXT: Schema = {"type": "string"}
SID: Schema = {"type": "string", "minLength": 1}
TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}
TRUTH: Schema = {"type": "boolean"}
# A number written as a string.
COUNT: Schema = {"type": "string", "pattern": "^[0-9]+$"}
KEY: Schema = {"type": "string", "pattern": "^[0-9*#A-D]$"}
DIGITS: Schema = {
    "type": "string",
    "pattern": "^[0-9*#A-DwW]{1,64}$",
    "description": "w waits 500 ms, W one second.",
}
PAYLOAD: Schema = {"type": "string", "contentEncoding": "base64"}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
TRACKS: Schema = {"enum": [["inbound"], ["inbound", "outbound"]]}


def constant(value: object) -> Schema:
    """Return the schema of one exact value."""
    return {"const": value}


def one_of(*values: object) -> Schema:
    """Return the schema of a choice of values."""
    return {"enum": list(values)}


def whole(minimum: int = 0, maximum: int | None = None) -> Schema:
    """Return the schema of a whole number."""
    return {"type": "integer", "minimum": minimum} | ({"maximum": maximum} if maximum is not None else {})


def frame(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object that we send: it has no other fields."""
    return command(required, optional) | {"additionalProperties": False}


def command(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object that an agent sends: other fields are ignored."""
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": properties}


# Fields of `start` when a stream continues another whose socket was lost.
RECONNECT: Mapping[str, Schema] = {
    "reconnect": constant(True),
    "attempt": whole(1),
    "previous_stream_sid": SID,
}

# Events that this server adds to every dialect: key and schema of their body.
ADDED_EVENTS: Mapping[str, tuple[str, Schema]] = {
    "dtmf_sent": ("dtmf", frame({"digits": DIGITS})),
    "hold": ("hold", frame({"active": TRUTH})),
    "mute": ("mute", frame({"active": TRUTH})),
    "record": ("record", frame({"action": one_of("start", "stop", "pause", "resume")})),
    "transfer": (
        "transfer",
        frame(
            {"status": one_of("ringing", "answered", "failed")},
            {"sip_status": whole(100, 699), "hangup_cause": TEXT},
        ),
    ),
    "error": ("error", frame({"code": TEXT, "message": TEXT}, {"ref": TEXT})),
    "speech": ("speech", frame({"state": one_of("start", "stop")})),
    "buffer": ("buffer", frame({"state": one_of("xoff", "xon"), "level_ms": whole()})),
}

_ADDRESS: Schema = {
    "type": "string",
    "pattern": r"^(\+[1-9][0-9]{5,14}|[0-9]{3,15}|(sips?|tel):[!-~]{1,250})$",
}

# Commands of every dialect.
COMMANDS: Mapping[str, Schema] = {
    "mark": command({"event": constant("mark"), "mark": command({"name": NAME})}),
    "clear": command({"event": constant("clear")}),
    "dtmf": command(
        {
            "event": constant("dtmf"),
            "dtmf": command({"digits": DIGITS}, {"duration_ms": whole(40, 5000), "gap_ms": whole(20, 5000)}),
        }
    ),
    "sendDTMF": command({"event": constant("sendDTMF"), "dtmf": DIGITS}),
    "hangup": command(
        {"event": constant("hangup")},
        {
            "hangup": command(
                {}, {"drain": TRUTH, "reason": {"type": "string", "pattern": "^[A-Za-z0-9_. -]{1,64}$"}}
            )
        },
    ),
    "stop": command({"event": constant("stop")}),
    "transfer": command(
        {
            "event": constant("transfer"),
            "transfer": command(
                {"to": _ADDRESS},
                {
                    "mode": one_of("bridge", "refer"),
                    "caller_id": {"anyOf": [_ADDRESS, {"type": "null"}]},
                    "timeout": whole(5, 120),
                    "headers": {
                        "type": "object",
                        "maxProperties": 16,
                        "propertyNames": {"pattern": "^X-[A-Za-z0-9-]{1,60}$"},
                        "additionalProperties": {"type": "string", "pattern": "^[ -~]{0,256}$"},
                    },
                },
            ),
        }
    ),
    "hold": command({"event": constant("hold"), "hold": command({"active": TRUTH})}),
    "mute": command({"event": constant("mute"), "mute": command({"active": TRUTH})}),
    "record": command(
        {
            "event": constant("record"),
            "record": command({"action": one_of("start", "stop", "pause", "resume")}),
        }
    ),
    "transcript": command(
        {
            "event": constant("transcript"),
            "transcript": command(
                {
                    "role": one_of("agent", "user"),
                    "text": {"type": "string", "minLength": 1, "maxLength": 4000},
                },
                {"final": TRUTH, "start_ms": whole(), "end_ms": whole()},
            ),
        }
    ),
}
