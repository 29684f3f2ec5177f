"""Base class of the protocols of realtime speech models, in which the vendor's server is the agent."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from media.streams.commands import MAX_TRANSCRIPT_CHARS
from media.streams.dialects.base import Dialect
from media.streams.model import (
    AgentBatch,
    AgentCommand,
    AgentDtmf,
    AgentFailed,
    AgentHold,
    AgentMute,
    AgentReady,
    AgentRecord,
    AgentReply,
    AgentToolCall,
    AgentTranscript,
    AgentUsage,
    CommandError,
    StreamSetup,
)
from media.streams.speech_models import ModelTurn

# What a later connection is told of this one.
_MAX_TURNS = 40
_MAX_TURN_CHARS = 1000

_MAX_ID_CHARS = 256
# Close codes (RFC 6455 7.4): the regular end, and faults after which another session may be had.
_REGULAR = (1000, 1005)
_PASSING = (1001, 1006, 1011, 1012, 1013)
_MAX_TOOL_NAME_CHARS = 128
_MAX_ARGUMENTS_CHARS = 32 * 1024
_MAX_CODE_CHARS = 100
_MAX_MESSAGE_CHARS = 500
# A day of audio; larger numbers in a report are no counts.
_MAX_COUNT = 1_000_000_000


class ModelDialect(Dialect):
    """
    Encoder and decoder of one session with a speech model.

    The first frame configures the session. Audio is sent once the vendor has accepted that (`is_ready`), and
    the greeting is asked for when the call is answered, too.

    Attributes:
        begins_with_call: True if the session is configured when the call is answered, not before.
    """

    begins_with_call: ClassVar[bool] = False
    both_tracks: ClassVar[bool] = False

    __slots__ = ("_is_ready", "_is_started", "_session", "_turns")

    def __init__(self, setup: StreamSetup) -> None:
        super().__init__(setup)
        assert setup.model is not None, "a speech model needs a session"
        self._session = setup.model
        self._is_ready = False
        self._is_started = False
        self._turns: deque[ModelTurn] = deque(setup.model.turns, _MAX_TURNS)

    # --- the session --------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """True when the vendor has accepted the session."""
        return self._is_ready

    @property
    def turns(self) -> tuple[ModelTurn, ...]:
        """The conversation so far, shortened, for a session that continues this one."""
        return tuple(self._turns)

    @property
    def resumption(self) -> str | None:
        """The vendor's token for continuing this session; None without one."""
        return None

    def start(self, unix_ms: int = 0) -> bytes | None:
        """Write the request for the greeting: the call is answered."""
        self._is_started = True
        frames = self._greeted() if self._is_ready else ()
        return frames[0] if frames else None

    def _ready(self) -> AgentCommand:
        """Note that the vendor has accepted the session."""
        self._is_ready = True
        frames = (*self._restored(), *(self._greeted() if self._is_started else ()))
        return AgentBatch((AgentReady(), AgentReply(frames)))

    def _greeted(self) -> tuple[bytes, ...]:
        """Return at most one frame that asks for the greeting; a continued session has none."""
        greeting = self._session.choice.greeting
        is_continued = bool(self._session.turns) or self._session.resumption is not None
        return () if greeting is None or is_continued else self._greet(greeting)

    def _greet(self, greeting: str) -> tuple[bytes, ...]:
        """Write the request for a greeting; empty if it was part of the configuration."""
        return ()

    def _restored(self) -> tuple[bytes, ...]:
        """Write the conversation of an earlier connection; empty if it was part of the configuration."""
        return ()

    def closed(self, code: int, reason: str) -> AgentFailed | None:
        """Evaluate a close frame of the vendor as an error; None for the regular end of a session."""
        if code in _REGULAR:
            return None
        may_continue = code in _PASSING and "quota" not in reason.lower()
        return failed(f"close_{code}", reason, may_continue=may_continue)

    # --- to the vendor ------------------------------------------------------------------------------------

    def interrupted(self, unplayed_ms: int) -> tuple[bytes, ...]:
        """Write what the party has heard when it interrupts; `unplayed_ms` of the audio were dropped."""
        return ()

    @abstractmethod
    def pressed(self, keys: str) -> tuple[bytes, ...]:
        """Write the keys that the party pressed as a text of its own."""

    @abstractmethod
    def tool_result(self, call_id: str, name: str, result: str, *, is_error: bool) -> tuple[bytes, ...]:
        """Write the result of a tool, as JSON or text."""

    def keep_alive(self) -> bytes | None:
        """Write the frame that keeps an idle session open, of vendors that want one."""
        return None

    # A model is told nothing of the following: its results of tools say it.

    def mark(self, name: str, *, cleared: bool) -> None:
        """Write nothing."""

    def dtmf(self, digit: str, duration_ms: int) -> None:
        """Write nothing: keys are collected, and written by `pressed`."""

    def event(self, event: str, key: str, body: Mapping[str, Any]) -> None:
        """Write nothing."""

    def stop(self, reason: str, detail: str) -> None:
        """Write nothing: the socket is closed."""

    def accepted(self, command: AgentDtmf | AgentHold | AgentMute | AgentRecord) -> None:
        """Write nothing."""

    # --- for the dialects -----------------------------------------------------------------------------------

    def _said(self, role: Literal["agent", "user"], text: object) -> AgentCommand:
        """Return a piece of the transcript, and keep it for a session that continues this one."""
        words = clean_text(text, MAX_TRANSCRIPT_CHARS)
        if not words:
            return AgentBatch()
        self._turns.append(ModelTurn(role, words[:_MAX_TURN_CHARS]))
        return AgentTranscript(role, words)


Handler = Callable[[Any, Mapping[str, Any]], "bytes | AgentCommand"]


def clean_text(value: object, most: int) -> str:
    """Return at most `most` characters of a text, without lone surrogates; empty if it is no text."""
    if not isinstance(value, str):
        return ""
    return value[:most].encode(errors="replace").decode().strip()


def read_id(value: object, field: str) -> str:
    """
    Check a name that the vendor gives a thing.

    Raises:
        CommandError: It is no string, or empty, or too long; names the field.
    """
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_ID_CHARS:
        raise CommandError(f"{field} must be a string of 1 to {_MAX_ID_CHARS} characters")
    return value


def read_part(message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """
    Return an object in a message.

    Raises:
        CommandError: It is none; names it.
    """
    part = message.get(name)
    if not isinstance(part, dict):
        raise CommandError(f"{name} must be an object")
    return part


def optional_part(message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object in a message, empty if there is none."""
    part = message.get(name)
    return part if isinstance(part, dict) else {}


def tool_call(call_id: object, name: object, arguments: object) -> AgentToolCall:
    """
    Return the use of a tool; its arguments are JSON text, or an object.

    Raises:
        CommandError: A part of it is missing, or too long.
    """
    if not isinstance(arguments, str):
        try:
            arguments = json.dumps(arguments)
        except (ValueError, RecursionError):
            raise CommandError("arguments must be an object") from None
    if len(arguments) > _MAX_ARGUMENTS_CHARS:
        raise CommandError(f"arguments must have at most {_MAX_ARGUMENTS_CHARS} characters")
    return AgentToolCall(read_id(call_id, "id"), read_id(name, "name")[:_MAX_TOOL_NAME_CHARS], arguments)


def failed(code: object, message: object, *, may_continue: bool = False) -> AgentFailed:
    """Return the vendor's error with its texts bounded."""
    words = clean_text(message, _MAX_MESSAGE_CHARS)
    return AgentFailed(clean_text(code, _MAX_CODE_CHARS) or "error", words, may_continue)


def usage_of(**counts: object) -> AgentUsage:
    """Return the counts that are sound numbers above zero."""
    sound = (
        (name, value)
        for name, value in counts.items()
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_COUNT
    )
    return AgentUsage(tuple(sound))
