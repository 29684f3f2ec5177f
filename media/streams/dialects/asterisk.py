"""
Raw audio in binary frames and commands in text frames, compatible with servers for Asterisk's chan_websocket.

Asterisk writes its commands as plain words unless the dial string has `f(json)`; so there are two dialects.
Either form is read in both. The events that other dialects share with this one are JSON, also among words.

Source: Asterisk documentation, Channel Drivers, WebSocket.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from media.streams.commands import MAX_MARK_NAME_CHARS, read_object
from media.streams.dialects.binary_audio import MARK_PREFIX, BinaryAudioDialect
from media.streams.dialects.json_audio import compact, reconnect_fields
from media.streams.model import (
    FRAME_MS,
    AgentClear,
    AgentCommand,
    AgentHangup,
    AgentMark,
    AgentPause,
    AgentStatus,
    CommandError,
    Encoding,
    StreamSetup,
    frame_bytes,
)

_BUFFERED_PREFIX = "buffered:"
_PROCESSED_PREFIX = "processed:"
_DRAINED = "drained"

# Levels of Asterisk's queue, in frames.
_XOFF_FRAMES, _XON_FRAMES = 900, 800

_WORD = re.compile(r"[A-Z_]{1,64}")
_FORMATS: Mapping[tuple[Encoding, int], str] = {
    ("mulaw", 8000): "ulaw",
    ("alaw", 8000): "alaw",
    ("l16", 8000): "slin",
    ("l16", 16_000): "slin16",
}


class AsteriskDialect(BinaryAudioDialect):
    """Encodes and decodes the frames of one stream, with commands as plain words."""

    name: ClassVar[str] = "asterisk"
    formats: ClassVar[tuple[tuple[Encoding, int], ...]] = tuple(_FORMATS)
    subprotocols: ClassVar[tuple[str, ...]] = ("media",)
    levels_ms: ClassVar[tuple[int, int] | None] = (_XOFF_FRAMES * FRAME_MS, _XON_FRAMES * FRAME_MS)

    __slots__ = ("_buffering", "_full", "_half")

    def __init__(self, setup: StreamSetup) -> None:
        super().__init__(setup)
        self._buffering = False
        self._half = b""
        self._full = False

    @property
    def envelope(self) -> tuple[bytes, bytes] | None:
        """Nothing; None while a sample may begin in one frame and end in the next."""
        return None if self._buffering and self._setup.encoding == "l16" else (b"", b"")

    def start(self, unix_ms: int = 0) -> bytes:
        """Write the event that describes the channel and its audio format."""
        setup = self._setup
        fields = {
            "connection_id": setup.stream_sid,
            "channel": f"WebSocket/{setup.call_sid}",
            "channel_id": setup.call_sid,
            "format": _FORMATS[setup.encoding, setup.sample_rate],
            "optimal_frame_size": frame_bytes(setup.encoding, setup.sample_rate),
            "ptime": FRAME_MS,
        }
        return self._say("MEDIA_START", fields | self._more() | reconnect_fields(setup))

    def mark(self, name: str, *, cleared: bool) -> bytes | None:
        """Write that the audio before a mark was played; of audio that is flushed, Asterisk tells nothing."""
        kind, _, identifier = name.partition(":")
        if kind == _DRAINED:
            return self._say("QUEUE_DRAINED", {}, "")
        if f"{kind}:" in _MARK_EVENTS:
            event = _MARK_EVENTS[f"{kind}:"]
            return None if cleared else self._say(event, {"correlation_id": identifier}, identifier)
        status = "cleared" if cleared else "played"
        return self.event("mark", "mark", {"name": name.removeprefix(MARK_PREFIX), "status": status})

    def dtmf(self, digit: str, duration_ms: int) -> bytes:
        """Write that the party pressed a DTMF key."""
        return self._say("DTMF_END", {"digit": digit, "channel_id": self._setup.call_sid})

    def stop(self, reason: str, detail: str) -> bytes | None:
        """Write nothing: Asterisk closes the socket."""
        return None

    def buffer(self, full: bool, level_ms: int) -> bytes:
        """Write that the agent should pause, or may resume."""
        self._full = full
        return self._say("MEDIA_XOFF" if full else "MEDIA_XON", {}, "")

    def status(self, queued_ms: int, paused: bool) -> bytes:
        """Write the state of the playout queue."""
        fields = {
            "channel_id": self._setup.call_sid,
            "queue_length": queued_ms // FRAME_MS,
            "xon_level": _XON_FRAMES,
            "xoff_level": _XOFF_FRAMES,
            "queue_full": self._full,
            "bulk_media": self._buffering,
            "media_paused": paused,
        }
        return self._say("STATUS", fields)

    def error(self, code: str, message: str, ref: str | None = None) -> bytes:
        """Write an error."""
        text = f"{ref}: {message} ({code})" if ref is not None else f"{message} ({code})"
        # In a line of words, nothing may look like the end of the line.
        words = "".join(character if character.isprintable() else " " for character in text)
        return self._say("ERROR", {"channel_id": self._setup.call_sid, "error_text": words})

    def decode(self, data: bytes) -> bytes | AgentCommand:
        """Parse a text frame."""
        if data.lstrip().startswith(b"{"):
            message = read_object(data)
            word = message.get("command")
            return self._common(message) if word is None else self._command(word, message)
        try:
            word, _, rest = data.decode().strip().partition(" ")
        except ValueError:
            raise CommandError("The frame is not text") from None
        return self._command(word, {"correlation_id": rest} if rest else {})

    def decode_binary(self, data: bytes) -> bytes | AgentCommand:
        """Parse a binary frame: audio of any length, whose last sample may be incomplete."""
        if self._setup.encoding != "l16":
            return data
        audio = self._half + data
        whole = len(audio) // 2 * 2
        # As Asterisk does: without buffering, what is left over is dropped.
        self._half = audio[whole:] if self._buffering else b""
        return audio[:whole]

    def _command(self, word: object, fields: Mapping[str, Any]) -> bytes | AgentCommand:
        if not isinstance(word, str) or not _WORD.fullmatch(word):
            raise CommandError("A command is a word in capital letters")
        command = _COMMANDS.get(word)
        if command is None:
            raise CommandError("There is no such command", code="unknown_event", ref=word, counts=False)
        try:
            return command(self, fields)
        except CommandError as error:
            error.ref = word
            raise

    def buffering(self, active: bool) -> bytes:
        """Begin or end audio whose pieces are cut anywhere; returns no audio."""
        self._buffering = active
        self._half = b""
        return b""

    def flush(self) -> AgentClear:
        """Clear the audio that was not played yet, and end the buffering."""
        self.buffering(False)
        return AgentClear()

    def stop_buffering(self, fields: Mapping[str, Any]) -> AgentMark:
        """Parse the end of audio in pieces; the mark behind it is reported."""
        mark = _mark(_BUFFERED_PREFIX, fields)
        self.buffering(False)
        return mark

    def _more(self) -> dict[str, Any]:
        """Return the fields of the first event that plain words cannot hold."""
        return {}

    def _say(self, event: str, fields: Mapping[str, Any], words: str | None = None) -> bytes:
        """Write an event; `words` follow it in place of names and values, if given."""
        if words is None:
            words = " ".join(f"{name}:{_plain(value)}" for name, value in fields.items())
        return f"{event} {words}".rstrip().encode()


class AsteriskJsonDialect(AsteriskDialect):
    """Encodes and decodes the frames of one stream, with commands as JSON."""

    name: ClassVar[str] = "asterisk_json"

    __slots__ = ()

    def _more(self) -> dict[str, Any]:
        setup = self._setup
        ours = {"account_sid": setup.account_sid, "from": setup.from_, "to": setup.to}
        return {"channel_variables": dict(setup.custom_parameters) | ours | {"direction": setup.direction}}

    def _say(self, event: str, fields: Mapping[str, Any], words: str | None = None) -> bytes:
        return compact({"event": event, "channel_id": self._setup.call_sid} | dict(fields)).encode()


_MARK_EVENTS: Mapping[str, str] = {
    _BUFFERED_PREFIX: "MEDIA_BUFFERING_COMPLETED",
    _PROCESSED_PREFIX: "MEDIA_MARK_PROCESSED",
}


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _mark(prefix: str, fields: Mapping[str, Any]) -> AgentMark:
    identifier = fields.get("correlation_id", "")
    if (
        not isinstance(identifier, str)
        or len(identifier) > MAX_MARK_NAME_CHARS
        or not all(character.isprintable() for character in identifier)
    ):
        raise CommandError(f"correlation_id must be {MAX_MARK_NAME_CHARS} printable characters at most")
    return AgentMark(prefix + identifier)


def _direction(fields: Mapping[str, Any]) -> bytes:
    if fields.get("direction") != "both":
        raise CommandError("Media goes both ways on every stream", code="refused", counts=False)
    return b""


_Command = Callable[[AsteriskDialect, Mapping[str, Any]], bytes | AgentCommand]

# Empty audio stands for nothing to do: the call is answered by the server.
_COMMANDS: Mapping[str, _Command] = {
    "ANSWER": lambda dialect, fields: b"",
    "HANGUP": lambda dialect, fields: AgentHangup(drain=False),
    "START_MEDIA_BUFFERING": lambda dialect, fields: dialect.buffering(True),
    "STOP_MEDIA_BUFFERING": AsteriskDialect.stop_buffering,
    "FLUSH_MEDIA": lambda dialect, fields: dialect.flush(),
    "PAUSE_MEDIA": lambda dialect, fields: AgentPause(True),
    "CONTINUE_MEDIA": lambda dialect, fields: AgentPause(False),
    "MARK_MEDIA": lambda dialect, fields: _mark(_PROCESSED_PREFIX, fields),
    "GET_STATUS": lambda dialect, fields: AgentStatus(),
    "REPORT_QUEUE_DRAINED": lambda dialect, fields: AgentMark(_DRAINED),
    "SET_MEDIA_DIRECTION": lambda dialect, fields: _direction(fields),
}
