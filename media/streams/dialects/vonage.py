"""Binary L16 with text frames of JSON, compatible with servers for Vonage's websocket endpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from media.streams.commands import CommandReader, read_clear, read_object
from media.streams.dialects.binary_audio import MARK_PREFIX, BinaryAudioDialect
from media.streams.dialects.json_audio import compact, ending, reconnect_fields
from media.streams.model import AgentCommand, AgentMark, CommandError

_NOTIFY_PREFIX = "notify:"
_MAX_NOTIFY_CHARS = 1024


def _notify(message: Mapping[str, Any]) -> AgentMark:
    payload = message.get("payload")
    if not isinstance(payload, dict):
        raise CommandError("payload must be an object")
    try:
        text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        raise CommandError("payload must be plain JSON") from None
    if len(text) > _MAX_NOTIFY_CHARS:
        raise CommandError(f"payload must not be longer than {_MAX_NOTIFY_CHARS} characters of JSON")
    return AgentMark(_NOTIFY_PREFIX + text)


_ACTIONS: Mapping[str, CommandReader] = {"clear": read_clear, "notify": _notify}


class VonageDialect(BinaryAudioDialect):
    """Encodes and decodes the frames of one stream."""

    name: ClassVar[str] = "vonage"

    __slots__ = ()

    def start(self, unix_ms: int = 0) -> bytes:
        """Write the frame that describes the call; the customer's parameters are added to ours."""
        setup = self._setup
        ours: dict[str, Any] = {
            "event": "websocket:connected",
            "content-type": f"audio/l16;rate={setup.sample_rate}",
            "call_sid": setup.call_sid,
            "stream_sid": setup.stream_sid,
            "account_sid": setup.account_sid,
            "from": setup.from_,
            "to": setup.to,
        } | reconnect_fields(setup)
        theirs = {name: value for name, value in setup.custom_parameters if name not in ours}
        return compact(ours | theirs).encode()

    def mark(self, name: str, *, cleared: bool) -> bytes:
        """Write that the audio before a notification or a mark was played or cleared."""
        if name.startswith(_NOTIFY_PREFIX):
            status = ',"status":"cleared"' if cleared else ""
            payload = name.removeprefix(_NOTIFY_PREFIX)
            return f'{{"event":"websocket:notify","payload":{payload}{status}}}'.encode()
        body = {"name": name.removeprefix(MARK_PREFIX), "status": "cleared" if cleared else "played"}
        return self.event("mark", "mark", body)

    def cleared(self) -> bytes:
        """Write that the audio was cleared."""
        return b'{"event":"websocket:cleared"}'

    def dtmf(self, digit: str, duration_ms: int) -> bytes:
        """Write that the party pressed a DTMF key."""
        return compact({"event": "websocket:dtmf", "digit": digit, "duration": duration_ms}).encode()

    def stop(self, reason: str, detail: str) -> bytes:
        """Write the last frame."""
        body = {"event": "websocket:disconnected", "reason": reason} | ending(reason, detail)
        return compact(body).encode()

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Parse a text frame."""
        message = read_object(data)
        action = message.get("action")
        if action is not None:
            return self._common(message, _ACTIONS, word=action)
        return self._common(message)
