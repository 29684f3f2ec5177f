"""Schemas of the text frames of dialects whose audio is binary."""

from __future__ import annotations

from collections.abc import Mapping

from media.streams.schemas.parts import (
    ADDED_EVENTS,
    COMMANDS,
    KEY,
    NAME,
    PAYLOAD,
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

__all__ = ["JAMBONZ", "VONAGE"]

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
