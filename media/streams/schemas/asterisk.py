"""Schemas of the text frames of Asterisk's dialects: lines of words, or JSON."""

from __future__ import annotations

from collections.abc import Mapping

from media.streams.schemas.parts import (
    ADDED_EVENTS,
    COMMANDS,
    KEY,
    NAME,
    RECONNECT,
    SID,
    TEXT,
    TEXTS,
    TRUTH,
    Frames,
    Schema,
    command,
    constant,
    frame,
    one_of,
    whole,
)

_DESCRIPTION = (
    "Mu-law or A-law at 8 kHz, or L16, little-endian, at 8 or 16 kHz, in binary frames both ways. The "
    "subprotocol is media. Commands are read as words and as JSON; events are "
)
_WITH_ID = ("STOP_MEDIA_BUFFERING", "MARK_MEDIA")
_WITHOUT_ID = (
    "ANSWER",
    "HANGUP",
    "START_MEDIA_BUFFERING",
    "FLUSH_MEDIA",
    "PAUSE_MEDIA",
    "CONTINUE_MEDIA",
    "GET_STATUS",
    "REPORT_QUEUE_DRAINED",
)
_IDENTIFIER: Schema = {"type": "string", "maxLength": 256}
# Events that this server adds, but those that these dialects have in Asterisk's form.
_ADDED: Mapping[str, Schema] = {
    name: frame({"event": constant(name), key: body})
    for name, (key, body) in ADDED_EVENTS.items()
    if name not in ("error", "buffer")
} | {
    "mark": frame(
        {"event": constant("mark"), "mark": frame({"name": NAME, "status": one_of("played", "cleared")})}
    )
}


def _line(pattern: str) -> Schema:
    return {"type": "string", "pattern": f"^{pattern}$"}


_FROM_AGENT: Mapping[str, Schema] = {
    **COMMANDS,
    "words": _line(f"({'|'.join(_WITHOUT_ID)}|({'|'.join(_WITH_ID)})( .{{0,256}})?)"),
    **{name: command({"command": constant(name)}) for name in _WITHOUT_ID},
    **{name: command({"command": constant(name)}, {"correlation_id": _IDENTIFIER}) for name in _WITH_ID},
    "SET_MEDIA_DIRECTION": command(
        {"command": constant("SET_MEDIA_DIRECTION"), "direction": constant("both")}
    ),
}

ASTERISK = Frames(
    _DESCRIPTION + "words.",
    {
        **_ADDED,
        "MEDIA_START": _line(
            r"MEDIA_START connection_id:\S+ channel:\S+ channel_id:\S+ format:(ulaw|alaw|slin|slin16) "
            r"optimal_frame_size:[0-9]+ ptime:20( reconnect:true attempt:[0-9]+ previous_stream_sid:\S+)?"
        ),
        "DTMF_END": _line(r"DTMF_END digit:[0-9*#A-D] channel_id:\S+"),
        "MEDIA_XOFF": _line("MEDIA_XOFF"),
        "MEDIA_XON": _line("MEDIA_XON"),
        "STATUS": _line(
            r"STATUS channel_id:\S+ queue_length:[0-9]+ xon_level:[0-9]+ xoff_level:[0-9]+ "
            "queue_full:(true|false) bulk_media:(true|false) media_paused:(true|false)"
        ),
        "MEDIA_BUFFERING_COMPLETED": _line("MEDIA_BUFFERING_COMPLETED( .+)?"),
        "MEDIA_MARK_PROCESSED": _line("MEDIA_MARK_PROCESSED( .+)?"),
        "QUEUE_DRAINED": _line("QUEUE_DRAINED"),
        "ERROR": _line(r"ERROR channel_id:\S+ error_text:.*"),
    },
    _FROM_AGENT,
    binary_audio=True,
)


def _event(name: str, fields: Mapping[str, Schema], more: Mapping[str, Schema] | None = None) -> Schema:
    return frame({"event": constant(name), "channel_id": SID, **fields}, more)


ASTERISK_JSON = Frames(
    _DESCRIPTION + "JSON.",
    {
        **_ADDED,
        "MEDIA_START": _event(
            "MEDIA_START",
            {
                "connection_id": SID,
                "channel": SID,
                "format": one_of("ulaw", "alaw", "slin", "slin16"),
                "optimal_frame_size": one_of(160, 320, 640),
                "ptime": constant(20),
                "channel_variables": TEXTS,
            },
            RECONNECT,
        ),
        "DTMF_END": _event("DTMF_END", {"digit": KEY}),
        "MEDIA_XOFF": _event("MEDIA_XOFF", {}),
        "MEDIA_XON": _event("MEDIA_XON", {}),
        "STATUS": _event(
            "STATUS",
            {
                "queue_length": whole(),
                "xon_level": whole(),
                "xoff_level": whole(),
                "queue_full": TRUTH,
                "bulk_media": TRUTH,
                "media_paused": TRUTH,
            },
        ),
        "MEDIA_BUFFERING_COMPLETED": _event("MEDIA_BUFFERING_COMPLETED", {"correlation_id": _IDENTIFIER}),
        "MEDIA_MARK_PROCESSED": _event("MEDIA_MARK_PROCESSED", {"correlation_id": _IDENTIFIER}),
        "QUEUE_DRAINED": _event("QUEUE_DRAINED", {}),
        "ERROR": _event("ERROR", {"error_text": TEXT}),
    },
    _FROM_AGENT,
    binary_audio=True,
)
