"""
Text frames of JSON in camel case, mu-law at 8 kHz, compatible with servers for Twilio's media streams.

Twilio's stop has no reason; ours states it in `detail`, unless the caller hung up.
"""

from __future__ import annotations

from typing import Any, ClassVar

from media.streams.dialects.json_audio import JsonAudioDialect, ending, reconnect_fields, tracks_of
from media.streams.model import Encoding


class TwilioDialect(JsonAudioDialect):
    """Encodes and decodes the frames of one stream."""

    name: ClassVar[str] = "twilio"
    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = (("mulaw", 8000),)
    sequence_name: ClassVar[str] = "sequenceNumber"
    stream_name: ClassVar[str] = "streamSid"

    __slots__ = ()

    def connected(self) -> bytes:
        """Write the first frame on the socket."""
        return b'{"event":"connected","protocol":"Call","version":"1.0.0"}'

    def start(self, unix_ms: int = 0) -> bytes:
        """Write the frame that describes the call and its audio format."""
        setup = self._setup
        parties = {"from_number": setup.from_, "to_number": setup.to}
        given = dict(setup.custom_parameters)
        body: dict[str, Any] = {
            "accountSid": setup.account_sid,
            "streamSid": setup.stream_sid,
            "callSid": setup.call_sid,
            "tracks": tracks_of(setup),
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": setup.sample_rate, "channels": 1},
            # Frameworks look for the parties' numbers here; the customer's parameters take precedence.
            "customParameters": given | {name: value for name, value in parties.items() if name not in given},
        }
        return self.event("start", "start", body | reconnect_fields(setup))

    def mark(self, name: str, *, cleared: bool) -> bytes:
        """Write that the audio before a mark was played or cleared."""
        body = {"name": name}
        if cleared:
            body["status"] = "cleared"
        return self.event("mark", "mark", body)

    def dtmf(self, digit: str, duration_ms: int) -> bytes:
        """Write that the party pressed a DTMF key."""
        return self.event("dtmf", "dtmf", {"track": "inbound_track", "digit": digit})

    def stop(self, reason: str, detail: str) -> bytes:
        """Write the last frame."""
        body = {"accountSid": self._setup.account_sid, "callSid": self._setup.call_sid}
        return self.event("stop", "stop", body | ending(reason, detail))
