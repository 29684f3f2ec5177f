"""
The default dialect: text frames of JSON, L16 at 8 or 16 kHz.

Stock clients of it end the session on the first frame that they cannot read, so every frame has `event`,
every `media` frame has a payload, and nothing is ever sent as binary. Names in camel case would have the
stream taken for another vendor's; there are none.
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from collections.abc import Mapping
from typing import Any, ClassVar

from media._engine import to_base64
from media.streams.commands import decode_command
from media.streams.dialects.envelope import MediaEnvelope
from media.streams.errors import CommandError
from media.streams.model import (
    AgentCommand,
    AgentDtmf,
    AgentHold,
    AgentMute,
    AgentRecord,
    Encoding,
    StreamSetup,
)

__all__ = ["ExotelDialect"]


class ExotelDialect:
    """
    Writes and reads the frames of one stream.

    Frames are numbered in the order in which they are written, so each must be sent, in that order.
    """

    name: ClassVar[str] = "exotel"
    formats: ClassVar[frozenset[tuple[Encoding, int]]] = frozenset({("l16", 8000), ("l16", 16000)})

    __slots__ = ("_chunk", "_envelope", "_media_template", "_sequence", "_setup", "_sid_json")

    def __init__(self, setup: StreamSetup) -> None:
        self._setup = setup
        self._sequence = 0
        self._chunk = 0
        self._envelope = MediaEnvelope()
        self._sid_json = json.dumps(setup.stream_sid)
        # The one frame that is sent fifty times a second is filled in, not built.
        self._media_template = (
            b'{"event":"media","sequence_number":"%d","stream_sid":'
            + self._sid_json.replace("%", "%%").encode()
            + b',"media":{"chunk":"%d","timestamp":"%d","payload":"'
        )

    def connected(self) -> bytes:
        """Write the frame that opens the socket's life."""
        return b'{"event":"connected"}'

    def start(self) -> bytes:
        """Write the frame that says what call this is and how its audio is coded."""
        setup = self._setup
        body: dict[str, Any] = {
            "stream_sid": setup.stream_sid,
            "call_sid": setup.call_sid,
            "account_sid": setup.account_sid,
            "from": setup.from_,
            "to": setup.to,
            "direction": setup.direction,
            "custom_parameters": dict(setup.custom_parameters),
            "media_format": {
                "encoding": "raw",
                "sample_rate": str(setup.sample_rate),
                "bit_rate": str(setup.sample_rate * 16 // 1000),
                "bits": 16,
                "channels": 1,
                "endian": "little",
            },
        }
        if setup.reconnect is not None:
            body["reconnect"] = True
            body["attempt"] = setup.reconnect.attempt
            body["previous_stream_sid"] = setup.reconnect.previous_stream_sid
        return self._frame("start", "start", body)

    def media(self, audio: bytes, timestamp_ms: int) -> bytes:
        """Write a frame of audio that ends `timestamp_ms` after the start of the stream."""
        self._sequence += 1
        self._chunk += 1
        head = self._media_template % (self._sequence, self._chunk, timestamp_ms)
        return to_base64(head, audio, b'"}}')

    def mark(self, name: str, *, cleared: bool) -> bytes:
        """Write that the audio before a mark was heard, or taken back."""
        return self._frame("mark", "mark", {"name": name, "status": "cleared" if cleared else "played"})

    def dtmf(self, digit: str, duration_ms: int) -> bytes:
        """Write that the caller pressed a key."""
        return self._frame("dtmf", "dtmf", {"digit": digit, "duration": str(duration_ms)})

    def accepted(self, command: AgentDtmf | AgentHold | AgentMute | AgentRecord) -> bytes:
        """Write that a command was carried out."""
        match command:
            case AgentDtmf(digits=digits):
                return self._frame("dtmf_sent", "dtmf", {"digits": digits})
            case AgentHold(active=active):
                return self._frame("hold", "hold", {"active": active})
            case AgentMute(active=active):
                return self._frame("mute", "mute", {"active": active})
            case AgentRecord(action=action):
                return self._frame("record", "record", {"action": action})

    def transfer(self, status: str, sip_status: int | None, hangup_cause: str | None) -> bytes:
        """Write how a transfer gets on."""
        body: dict[str, Any] = {"status": status}
        if sip_status is not None:
            body["sip_status"] = sip_status
        if hangup_cause is not None:
            body["hangup_cause"] = hangup_cause
        return self._frame("transfer", "transfer", body)

    def error(self, code: str, message: str, ref: str | None = None) -> bytes:
        """Write that something could not be done."""
        body = {"code": code, "message": message}
        if ref is not None:
            body["ref"] = ref
        return self._frame("error", "error", body)

    def stop(self, reason: str, detail: str) -> bytes:
        """Write that no more will follow."""
        body = {
            "call_sid": self._setup.call_sid,
            "account_sid": self._setup.account_sid,
            "reason": reason,
            "detail": detail,
        }
        return self._frame("stop", "stop", body)

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """
        Read a text frame of the agent; audio comes as plain bytes, to spare one object per frame.

        Raises:
            CommandError: The frame means nothing, or its body is wrong.
        """
        audio = self._envelope.open(data)
        if audio is not None and not len(audio) % 2:
            return audio
        message = _object(data)
        if message.get("event") == "media":
            return self._media(data, message)
        return decode_command(message)

    def _media(self, data: bytes, message: Mapping[str, Any]) -> bytes:
        media = message.get("media")
        payload = media.get("payload") if isinstance(media, dict) else None
        if not isinstance(payload, str):
            raise CommandError("media.payload must be a string", ref="media")
        try:
            audio = a2b_base64(payload, strict_mode=True)
        except ValueError:
            raise CommandError("media.payload must be base64", ref="media") from None
        if len(audio) % 2:
            raise CommandError("media.payload must hold whole samples of 16 bits", ref="media")
        self._envelope.learn(data, payload)
        return audio

    def _frame(self, event: str, key: str, body: Mapping[str, Any]) -> bytes:
        self._sequence += 1
        text = json.dumps(body, separators=(",", ":"))
        head = f'{{"event":"{event}","sequence_number":"{self._sequence}","stream_sid":{self._sid_json}'
        return f'{head},"{key}":{text}}}'.encode()


def _object(data: bytes) -> dict[str, Any]:
    """Read a JSON object; RFC 8259 and RFC 6455 both want UTF-8."""
    try:
        message = json.loads(data.decode())
    except (ValueError, RecursionError):
        raise CommandError("The frame is not JSON", code="invalid_json") from None
    if not isinstance(message, dict):
        raise CommandError("The frame is not a JSON object", code="invalid_json")
    return message
