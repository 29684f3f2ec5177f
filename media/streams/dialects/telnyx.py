"""Text frames of JSON, G.711 at 8 kHz or L16 at 16 kHz, compatible with Telnyx's media streams."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from media.streams.dialects.json_audio import (
    JsonAudioDialect,
    compact,
    ending,
    reconnect_fields,
    tracks_of,
)
from media.streams.model import Encoding, StreamSetup

_NAMES: dict[Encoding, str] = {"mulaw": "PCMU", "alaw": "PCMA", "l16": "L16"}


class TelnyxDialect(JsonAudioDialect):
    """Encodes and decodes the frames of one stream; its marks and errors have no number."""

    name: ClassVar[str] = "telnyx"
    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("mulaw", 8000), ("alaw", 8000), ("l16", 16000))
    sequence_name: ClassVar[str] = "sequence_number"
    stream_name: ClassVar[str] = "stream_id"

    __slots__ = ("_started_unix_ms",)

    def __init__(self, setup: StreamSetup) -> None:
        super().__init__(setup)
        self._started_unix_ms = 0

    def connected(self) -> bytes:
        """Write the first frame on the socket."""
        return b'{"event":"connected","version":"1.0.0"}'

    def start(self, unix_ms: int = 0) -> bytes:
        """Write the frame that describes the call and its audio format."""
        setup = self._setup
        self._started_unix_ms = unix_ms
        body: dict[str, Any] = {
            "user_id": setup.account_sid,
            "call_control_id": setup.call_sid,
            "call_session_id": setup.call_sid,
            "from": setup.from_,
            "to": setup.to,
            "tags": [],
            "client_state": "",
            "custom_parameters": dict(setup.custom_parameters),
            "media_format": {
                "encoding": _NAMES[setup.encoding],
                "sample_rate": setup.sample_rate,
                "channels": 1,
            },
        }
        if setup.track == "both":
            body["tracks"] = tracks_of(setup)
        return self.event("start", "start", body | reconnect_fields(setup))

    def mark(self, name: str, *, cleared: bool) -> bytes:
        """Write that the audio before a mark was played or cleared."""
        body = {"name": name}
        if cleared:
            body["status"] = "cleared"
        return self._unnumbered("mark", "mark", body)

    def dtmf(self, digit: str, duration_ms: int) -> bytes:
        """Write that the party pressed a DTMF key."""
        moment = datetime.fromtimestamp((self._started_unix_ms + self._now_ms) / 1000, UTC)
        occurred_at = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = f'{{"event":"dtmf","stream_id":{self._sid_json},"sequence_number":"{self._number()}"'
        return f'{head},"occurred_at":"{occurred_at}","dtmf":{compact({"digit": digit})}}}'.encode()

    def error(self, code: str, message: str, ref: str | None = None) -> bytes:
        """Write an error in this dialect's form."""
        body = {"code": code, "title": code.replace("_", " "), "detail": message}
        if ref is not None:
            body["ref"] = ref
        return self._unnumbered("error", "payload", body)

    def stop(self, reason: str, detail: str) -> bytes:
        """Write the last frame."""
        body = {"user_id": self._setup.account_sid, "call_control_id": self._setup.call_sid}
        return self.event("stop", "stop", body | ending(reason, detail))
