"""Fast path for JSON frames of audio."""

from __future__ import annotations

import json

from media._engine import from_base64

__all__ = ["MediaEnvelope"]

# A sender that numbers its frames never repeats an envelope; after this many tries we stop looking for one.
_MAX_LESSONS = 4
_PROBE = "UFJPQkU="


class MediaEnvelope:
    """
    Recognises frames of audio that differ from an earlier one only in the payload.

    A sender writes the same text around the payload each time. After a frame was parsed as JSON, its
    beginning and end are stored. A later frame with both, and pure base64 between them, must be the same
    message with another payload, and needs no JSON parser.
    """

    __slots__ = ("_event", "_lessons", "_prefix", "_suffix")

    def __init__(self, event: str = "media") -> None:
        self._event = event
        self._lessons = 0
        self._prefix = self._suffix = b""

    def open(self, data: bytes) -> bytes | None:
        """Return the audio of a matching frame; None if the frame must be parsed as JSON."""
        if not self._prefix:
            return None
        # Strict base64, so that no quote or backslash can hide between beginning and end.
        return from_base64(data, self._prefix, self._suffix)

    def learn(self, data: bytes, payload: str) -> bool:
        """Store the text around the payload of a frame parsed as JSON; True if that was possible."""
        if self._lessons >= _MAX_LESSONS or not payload:
            return False
        self._lessons += 1
        prefix, found, suffix = data.partition(payload.encode())
        # The payload may be escaped in the frame, or occur first as another value.
        if found and self._payload_of(prefix + _PROBE.encode() + suffix) == _PROBE:
            self._prefix, self._suffix = prefix, suffix
            return True
        return False

    def _payload_of(self, data: bytes) -> object:
        try:
            message = json.loads(data)
            return message["media"]["payload"] if message["event"] == self._event else None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
