"""
The default dialect: text frames of JSON, L16 at 8 or 16 kHz.

Stock clients end the session on the first frame that they cannot parse, so every frame has `event`, every
`media` frame has a payload, and no binary frame is ever sent. No name is in camel case: clients would take
the stream for another vendor's.
"""

from __future__ import annotations

from typing import Any, ClassVar

from media.streams.dialects.json_audio import JsonAudioDialect, reconnect_fields
from media.streams.model import Encoding, Track


class ExotelDialect(JsonAudioDialect):
    """Encodes and decodes the frames of one stream."""

    name: ClassVar[str] = "exotel"
    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("l16", 8000), ("l16", 16000))
    sequence_name: ClassVar[str] = "sequence_number"
    stream_name: ClassVar[str] = "stream_sid"

    __slots__ = ()

    def connected(self) -> bytes:
        """Write the first frame on the socket."""
        return b'{"event":"connected"}'

    def start(self, unix_ms: int = 0) -> bytes:
        """Write the frame that describes the call and its audio format."""
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
        if setup.track == "both":
            body["tracks"] = ["inbound", "outbound"]
        return self.event("start", "start", body | reconnect_fields(setup))

    def mark(self, name: str, *, cleared: bool) -> bytes:
        """Write that the audio before a mark was played or cleared."""
        return self.event("mark", "mark", {"name": name, "status": "cleared" if cleared else "played"})

    def dtmf(self, digit: str, duration_ms: int) -> bytes:
        """Write that the party pressed a DTMF key."""
        return self.event("dtmf", "dtmf", {"digit": digit, "duration": str(duration_ms)})

    def stop(self, reason: str, detail: str) -> bytes:
        """Write the last frame."""
        body = {
            "call_sid": self._setup.call_sid,
            "account_sid": self._setup.account_sid,
            "reason": reason,
            "detail": detail,
        }
        return self.event("stop", "stop", body)

    def _track_field(self, track: Track) -> str:
        # Only an agent that gets both tracks gets the track's name; others know the frame without it.
        return super()._track_field(track) if self._setup.track == "both" else ""
