"""Schemas of the text frames of each dialect."""

from __future__ import annotations

from collections.abc import Mapping

from media.streams.schemas.parts import (
    ADDED_EVENTS,
    COMMANDS,
    COUNT,
    DIGITS,
    KEY,
    NAME,
    PAYLOAD,
    RECONNECT,
    SID,
    TEXT,
    TEXTS,
    TRACKS,
    TRUTH,
    Frames,
    Schema,
    command,
    constant,
    frame,
    one_of,
    whole,
)

_TRACK = one_of("inbound", "outbound")
_ENDING = {"detail": TEXT}
_RATE = one_of(8000, 16000)


def _events(head: Mapping[str, Schema], **own: tuple[str, Schema]) -> dict[str, Schema]:
    """Return a dialect's own events and the added ones, all with the fields of `head`."""
    return {
        name: frame({"event": constant(name), **head, key: body})
        for name, (key, body) in {**ADDED_EVENTS, **own}.items()
    }


def _media(event: str = "media", **more: Schema) -> dict[str, Schema]:
    """Return the schema of audio from the agent."""
    return {event: command({"event": constant(event), "media": command({"payload": PAYLOAD}, more)})}


_EXOTEL_FORMAT = frame(
    {
        "encoding": constant("raw"),
        "sample_rate": one_of("8000", "16000"),
        "bit_rate": one_of("128", "256"),
        "bits": constant(16),
        "channels": constant(1),
        "endian": constant("little"),
    }
)

EXOTEL = Frames(
    "L16, little-endian, at 8 or 16 kHz, in base64. The default.",
    {
        "connected": frame({"event": constant("connected")}),
        **_events(
            {"sequence_number": COUNT, "stream_sid": SID},
            start=(
                "start",
                frame(
                    {
                        "stream_sid": SID,
                        "call_sid": SID,
                        "account_sid": SID,
                        "from": TEXT,
                        "to": TEXT,
                        "direction": one_of("inbound", "outbound"),
                        "custom_parameters": TEXTS,
                        "media_format": _EXOTEL_FORMAT,
                    },
                    {"tracks": TRACKS, **RECONNECT},
                ),
            ),
            media=(
                "media",
                frame({"chunk": COUNT, "timestamp": COUNT, "payload": PAYLOAD}, {"track": _TRACK}),
            ),
            mark=("mark", frame({"name": NAME, "status": one_of("played", "cleared")})),
            dtmf=("dtmf", frame({"digit": KEY, "duration": COUNT})),
            stop=(
                "stop",
                frame(
                    {
                        "call_sid": SID,
                        "account_sid": SID,
                        "reason": one_of("callended", "stopped"),
                        "detail": TEXT,
                    }
                ),
            ),
        ),
    },
    {**COMMANDS, **_media()},
)

TWILIO = Frames(
    "Mu-law at 8 kHz, in base64.",
    {
        "connected": frame(
            {"event": constant("connected"), "protocol": constant("Call"), "version": constant("1.0.0")}
        ),
        **_events(
            {"sequenceNumber": COUNT, "streamSid": SID},
            start=(
                "start",
                frame(
                    {
                        "accountSid": SID,
                        "streamSid": SID,
                        "callSid": SID,
                        "tracks": TRACKS,
                        "mediaFormat": frame(
                            {
                                "encoding": constant("audio/x-mulaw"),
                                "sampleRate": constant(8000),
                                "channels": constant(1),
                            }
                        ),
                        "customParameters": TEXTS,
                    },
                    RECONNECT,
                ),
            ),
            media=(
                "media",
                frame({"track": _TRACK, "chunk": COUNT, "timestamp": COUNT, "payload": PAYLOAD}),
            ),
            mark=("mark", frame({"name": NAME}, {"status": constant("cleared")})),
            dtmf=("dtmf", frame({"track": constant("inbound_track"), "digit": KEY})),
            stop=("stop", frame({"accountSid": SID, "callSid": SID}, _ENDING)),
        ),
    },
    {**COMMANDS, **_media()},
)

_PLIVO_HEAD: Mapping[str, Schema] = {"sequenceNumber": whole(1), "streamId": SID}
_PLIVO_EVENTS = _events(
    _PLIVO_HEAD,
    dtmf=("dtmf", frame({"track": constant("inbound"), "digit": KEY, "timestamp": COUNT})),
    stop=("stop", frame({"callId": SID, "accountId": SID}, _ENDING)),
)
_PLIVO_TO_AGENT: Mapping[str, Schema] = {
    "start": frame(
        {
            "event": constant("start"),
            "sequenceNumber": whole(1),
            "start": frame(
                {
                    "callId": SID,
                    "streamId": SID,
                    "accountId": SID,
                    "tracks": TRACKS,
                    "mediaFormat": frame(
                        {"encoding": one_of("audio/x-mulaw", "audio/x-l16"), "sampleRate": _RATE}
                    ),
                },
                RECONNECT,
            ),
            "extra_headers": TEXT,
        }
    ),
    "media": frame(
        {
            "event": constant("media"),
            **_PLIVO_HEAD,
            "media": frame({"track": _TRACK, "timestamp": COUNT, "chunk": whole(1), "payload": PAYLOAD}),
            "extra_headers": TEXT,
        }
    ),
    "clearedAudio": frame({"event": constant("clearedAudio"), "streamId": SID}),
    **_PLIVO_EVENTS,
}
_PLIVO_FROM_AGENT: Mapping[str, Schema] = {
    **COMMANDS,
    **_media(
        "playAudio",
        contentType={"type": "string", "pattern": "(?i)^audio/x-(mulaw|alaw|l16)"},
        sampleRate={"type": ["integer", "string"]},
    ),
    "checkpoint": command({"event": constant("checkpoint"), "name": NAME}),
    "clearAudio": command({"event": constant("clearAudio")}),
    "sendDTMF": command({"event": constant("sendDTMF"), "dtmf": DIGITS}),
}

PLIVO = Frames(
    "Mu-law at 8 kHz or L16, little-endian, at 8 or 16 kHz, in base64; audio of another kind is converted. "
    "`start` is the first frame.",
    {
        **_PLIVO_TO_AGENT,
        "playedStream": frame({"event": constant("playedStream"), "streamId": SID, "name": NAME}),
    },
    _PLIVO_FROM_AGENT,
)

VOBIZ = Frames(
    PLIVO.description,
    {**_PLIVO_TO_AGENT, "playedStream": frame({"event": constant("playedStream"), "name": NAME})},
    _PLIVO_FROM_AGENT,
)

_TELNYX_HEAD: Mapping[str, Schema] = {"sequence_number": COUNT, "stream_id": SID}

TELNYX = Frames(
    "Mu-law or A-law at 8 kHz, or L16, little-endian, at 16 kHz, in base64.",
    {
        "connected": frame({"event": constant("connected"), "version": TEXT}),
        **_events(
            _TELNYX_HEAD,
            start=(
                "start",
                frame(
                    {
                        "user_id": SID,
                        "call_control_id": SID,
                        "call_session_id": SID,
                        "from": TEXT,
                        "to": TEXT,
                        "tags": {"type": "array", "items": TEXT},
                        "client_state": TEXT,
                        "custom_parameters": TEXTS,
                        "media_format": frame(
                            {
                                "encoding": one_of("PCMU", "PCMA", "L16"),
                                "sample_rate": _RATE,
                                "channels": constant(1),
                            }
                        ),
                    },
                    {"tracks": TRACKS, **RECONNECT},
                ),
            ),
            media=(
                "media",
                frame({"track": _TRACK, "chunk": COUNT, "timestamp": COUNT, "payload": PAYLOAD}),
            ),
            stop=("stop", frame({"user_id": SID, "call_control_id": SID}, _ENDING)),
        ),
        "mark": frame(
            {
                "event": constant("mark"),
                "stream_id": SID,
                "mark": frame({"name": NAME}, {"status": constant("cleared")}),
            }
        ),
        "error": frame(
            {
                "event": constant("error"),
                "stream_id": SID,
                "payload": frame({"code": TEXT, "title": TEXT, "detail": TEXT}, {"ref": TEXT}),
            }
        ),
        "dtmf": frame(
            {
                "event": constant("dtmf"),
                **_TELNYX_HEAD,
                "occurred_at": {"type": "string", "format": "date-time"},
                "dtmf": frame({"digit": KEY}),
            }
        ),
    },
    {**COMMANDS, **_media()},
)


_ADDED: Mapping[str, Schema] = {
    name: frame({"event": constant(name), key: body}) for name, (key, body) in ADDED_EVENTS.items()
}
_MARK_DONE = frame({"name": NAME, "status": one_of("played", "cleared")})
_NOTE: Schema = {"type": "object"}

VONAGE = Frames(
    "L16, little-endian, at 8 or 16 kHz, in binary frames both ways. The first frame has custom parameters.",
    {
        **_ADDED,
        "websocket:connected": command(
            {
                "event": constant("websocket:connected"),
                "content-type": one_of("audio/l16;rate=8000", "audio/l16;rate=16000"),
                "call_sid": SID,
                "stream_sid": SID,
                "account_sid": SID,
                "from": TEXT,
                "to": TEXT,
            },
            RECONNECT,
        )
        | {"additionalProperties": TEXT},
        "websocket:dtmf": frame({"event": constant("websocket:dtmf"), "digit": KEY, "duration": whole()}),
        "websocket:cleared": frame({"event": constant("websocket:cleared")}),
        "websocket:notify": frame(
            {"event": constant("websocket:notify"), "payload": _NOTE}, {"status": constant("cleared")}
        ),
        "websocket:disconnected": frame(
            {"event": constant("websocket:disconnected"), "reason": one_of("callended", "stopped")},
            {"detail": TEXT},
        ),
        "mark": frame({"event": constant("mark"), "mark": _MARK_DONE}),
    },
    {
        **COMMANDS,
        "action:clear": command({"action": constant("clear")}),
        "action:notify": command({"action": constant("notify"), "payload": _NOTE}),
    },
    binary_audio=True,
)


def _typed(kind: str, data: Schema | None = None) -> Schema:
    return command({"type": constant(kind)} | ({"data": data} if data is not None else {}))


JAMBONZ = Frames(
    "L16, little-endian, at 8 or 16 kHz, in binary frames both ways; an empty one from the agent ends the "
    "call. The subprotocol is audio.drachtio.org.",
    {
        **_ADDED,
        "metadata": frame(
            {
                "sampleRate": one_of(8000, 16000),
                "mixType": constant("mono"),
                "callSid": SID,
                "direction": one_of("inbound", "outbound"),
                "from": TEXT,
                "to": TEXT,
                "callId": TEXT,
                "callStatus": constant("in-progress"),
                "sipStatus": whole(100, 699),
                "accountSid": SID,
                "applicationSid": TEXT,
                "customerData": TEXTS,
            },
            RECONNECT,
        ),
        "dtmf": frame({"event": constant("dtmf"), "dtmf": KEY, "duration": whole()}),
        "mark": frame(
            {"type": constant("mark"), "data": frame({"name": NAME, "event": one_of("playout", "cleared")})}
        ),
        "playDone": frame(
            {"type": constant("playDone"), "data": frame({"id": NAME}, {"status": constant("cleared")})}
        ),
        "stop": frame(
            {
                "event": constant("stop"),
                "stop": frame({"callSid": SID, "reason": one_of("callended", "stopped"), "detail": TEXT}),
            }
        ),
    },
    {
        **COMMANDS,
        "type:playAudio": _typed(
            "playAudio",
            command(
                {"audioContentType": one_of("raw", "wav", "wave"), "audioContent": PAYLOAD},
                {"sampleRate": {"type": ["integer", "string"]}, "id": NAME, "queuePlay": TRUTH},
            ),
        ),
        "type:killAudio": _typed("killAudio"),
        "type:mark": _typed("mark", command({"name": NAME})),
        "type:clearMarks": _typed("clearMarks"),
        "type:disconnect": _typed("disconnect"),
    },
    binary_audio=True,
)
