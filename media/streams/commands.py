"""
Parser of an agent's commands: those of every dialect, and helpers for the dialects' own.

Every value is validated here, so that later code can rely on it.
"""

from __future__ import annotations

import json
import re
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from media.streams.model import (
    AgentClear,
    AgentCommand,
    AgentDtmf,
    AgentHangup,
    AgentHold,
    AgentMark,
    AgentMute,
    AgentRecord,
    AgentTranscript,
    AgentTransfer,
    CommandError,
    RecordAction,
    TranscriptRole,
    TransferMode,
)

CommandReader = Callable[[Mapping[str, Any]], AgentCommand]

MAX_MARK_NAME_CHARS = 256
MAX_TRANSCRIPT_CHARS = 4000
_MAX_HEADERS = 16

_DIGITS = re.compile(r"[0-9*#A-DwW]{1,64}")
_ADDRESS = re.compile(r"\+[1-9][0-9]{5,14}|[0-9]{3,15}|(?:sips?|tel):[!-~]{1,250}")
_HEADER_NAME = re.compile(r"X-[A-Za-z0-9-]{1,60}")
_HEADER_VALUE = re.compile(r"[ -~]{0,256}")
_REASON = re.compile(r"[A-Za-z0-9_. -]{1,64}")

_MODES: dict[str, TransferMode] = {"bridge": "bridge", "refer": "refer"}
_ROLES: dict[str, TranscriptRole] = {"agent": "agent", "user": "user"}
_MAX_CALL_MS = 7 * 24 * 3600 * 1000
_ACTIONS: dict[str, RecordAction] = {"start": "start", "stop": "stop", "pause": "pause", "resume": "resume"}


def read_object(data: bytes) -> dict[str, Any]:
    """
    Parse a JSON object; RFC 8259 and RFC 6455 both require UTF-8.

    Raises:
        CommandError: The frame is no JSON object.
    """
    try:
        message = json.loads(data.decode())
    except (ValueError, RecursionError):
        raise CommandError("The frame is not JSON", code="invalid_json") from None
    if not isinstance(message, dict):
        raise CommandError("The frame is not a JSON object", code="invalid_json")
    return message


def decode_command(
    message: Mapping[str, Any],
    more: Mapping[str, CommandReader] = MappingProxyType({}),
    *,
    word: object = None,
) -> AgentCommand:
    """
    Parse a command from its JSON object.

    `more` are the additional commands of a dialect. `word` is the command's name, where `event` does not
    hold it.

    Raises:
        CommandError: The command is unknown, or its body is wrong.
    """
    event = message.get("event") if word is None else word
    reader = more.get(event) or _READERS.get(event) if isinstance(event, str) else None
    if reader is None:
        # Frameworks send their own messages through the same socket; they are no sign of abuse.
        ref = event if isinstance(event, str) and len(event) <= 64 else None
        raise CommandError("There is no such command", code="unknown_event", ref=ref, counts=False)
    try:
        return reader(message)
    except CommandError as error:
        error.ref = str(event)
        raise


def read_mark_name(value: object, field: str) -> str:
    """
    Check the name of a mark.

    Raises:
        CommandError: It is no string, empty or too long; names the field.
    """
    if not isinstance(value, str) or not 0 < len(value) <= MAX_MARK_NAME_CHARS:
        raise CommandError(f"{field} must be a string of 1 to {MAX_MARK_NAME_CHARS} characters")
    return _encodable(value, field)


def _encodable(text: str, field: str) -> str:
    # A lone surrogate is valid in JSON, but cannot be encoded again.
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise CommandError(f"{field} holds a lone surrogate")
    return text


def _mark(message: Mapping[str, Any]) -> AgentMark:
    return AgentMark(read_mark_name(_body(message, "mark").get("name"), "mark.name"))


def read_clear(message: Mapping[str, Any]) -> AgentClear:
    """Parse a command that clears the audio; it has no fields."""
    return AgentClear()


def _dtmf(message: Mapping[str, Any]) -> AgentDtmf:
    body = _body(message, "dtmf")
    return AgentDtmf(
        read_digits(body.get("digits", body.get("digit"))),
        _integer(body, "duration_ms", default=160, minimum=40, maximum=5_000),
        _integer(body, "gap_ms", default=80, minimum=20, maximum=5_000),
    )


def _send_dtmf(message: Mapping[str, Any]) -> AgentDtmf:
    return AgentDtmf(read_digits(message.get("dtmf")))


def _hangup(message: Mapping[str, Any]) -> AgentHangup:
    body = _body(message, "hangup", optional=True)
    reason = body.get("reason", "completed")
    if not isinstance(reason, str) or not _REASON.fullmatch(reason):
        raise CommandError("hangup.reason must be 1 to 64 letters, digits, spaces or . _ -")
    return AgentHangup(_boolean(body, "drain", default=True), reason, ends_call=True)


def _stop(message: Mapping[str, Any]) -> AgentHangup:
    return AgentHangup(drain=True, reason="completed")


def _transfer(message: Mapping[str, Any]) -> AgentTransfer:
    body = _body(message, "transfer")
    to = body.get("to")
    if not isinstance(to, str) or not _ADDRESS.fullmatch(to):
        raise CommandError("transfer.to must be a number such as +919812345678, or a sip: or tel: address")
    mode = body.get("mode", "bridge")
    if not isinstance(mode, str) or mode not in _MODES:
        raise CommandError("transfer.mode must be bridge or refer")
    caller_id = body.get("caller_id")
    if caller_id is not None and (not isinstance(caller_id, str) or not _ADDRESS.fullmatch(caller_id)):
        raise CommandError("transfer.caller_id must be a number such as +918047000000")
    timeout_s = _integer(body, "timeout", default=30, minimum=5, maximum=120)
    return AgentTransfer(to, _MODES[mode], caller_id, timeout_s, _headers(body.get("headers")))


def _hold(message: Mapping[str, Any]) -> AgentHold:
    return AgentHold(_boolean(_body(message, "hold"), "active"))


def _mute(message: Mapping[str, Any]) -> AgentMute:
    return AgentMute(_boolean(_body(message, "mute"), "active"))


def _record(message: Mapping[str, Any]) -> AgentRecord:
    action = _body(message, "record").get("action")
    if not isinstance(action, str) or action not in _ACTIONS:
        raise CommandError("record.action must be start, stop, pause or resume")
    return AgentRecord(_ACTIONS[action])


def _transcript(message: Mapping[str, Any]) -> AgentTranscript:
    body = _body(message, "transcript")
    role, text = body.get("role"), body.get("text")
    if not isinstance(role, str) or role not in _ROLES:
        raise CommandError("transcript.role must be agent or user")
    if not isinstance(text, str) or not 0 < len(text) <= MAX_TRANSCRIPT_CHARS:
        raise CommandError(f"transcript.text must be a string of 1 to {MAX_TRANSCRIPT_CHARS} characters")
    start_ms, end_ms = _moment(body, "start_ms"), _moment(body, "end_ms")
    if start_ms is not None and end_ms is not None and end_ms < start_ms:
        raise CommandError("transcript.end_ms must not be before start_ms")
    final = _boolean(body, "final", default=True)
    return AgentTranscript(_ROLES[role], _encodable(text, "transcript.text"), final, start_ms, end_ms)


def _moment(body: Mapping[str, Any], name: str) -> int | None:
    if body.get(name) is None:
        return None
    return _integer(body, name, default=0, minimum=0, maximum=_MAX_CALL_MS)


_READERS: dict[str, CommandReader] = {
    "mark": _mark,
    "clear": read_clear,
    "dtmf": _dtmf,
    "sendDTMF": _send_dtmf,
    "hangup": _hangup,
    "stop": _stop,
    "transfer": _transfer,
    "hold": _hold,
    "mute": _mute,
    "record": _record,
    "transcript": _transcript,
}


def _body(message: Mapping[str, Any], name: str, *, optional: bool = False) -> Mapping[str, Any]:
    body = message.get(name, {} if optional else None)
    if not isinstance(body, dict):
        raise CommandError(f"{name} must be an object")
    return body


def read_digits(value: object) -> str:
    """
    Check digits that the agent sends.

    Raises:
        CommandError: There are none, too many, or invalid ones.
    """
    if not isinstance(value, str) or not _DIGITS.fullmatch(value):
        raise CommandError("dtmf digits must be 1 to 64 of 0-9 * # A-D w W")
    return value


def read_audio(value: object, field: str, ref: str, sample_bytes: int) -> bytes:
    """
    Decode audio in base64.

    Raises:
        CommandError: It is no base64, or holds a part of a sample; names the field and the event `ref`.
    """
    if not isinstance(value, str):
        raise CommandError(f"{field} must be a string", ref=ref)
    try:
        audio = a2b_base64(value, strict_mode=True)
    except ValueError:
        raise CommandError(f"{field} must be base64", ref=ref) from None
    if len(audio) % sample_bytes:
        raise CommandError(f"{field} must hold whole samples of 16 bits", ref=ref)
    return audio


def _integer(body: Mapping[str, Any], name: str, *, default: int, minimum: int, maximum: int) -> int:
    value = body.get(name, default)
    # True is an int in Python, not in JSON.
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise CommandError(f"{name} must be a whole number from {minimum} to {maximum}")
    return value


def _boolean(body: Mapping[str, Any], name: str, *, default: bool | None = None) -> bool:
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise CommandError(f"{name} must be true or false")
    return value


def _headers(value: object) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    if not isinstance(value, dict) or len(value) > _MAX_HEADERS:
        raise CommandError(f"transfer.headers must be an object of at most {_MAX_HEADERS} entries")
    for name, text in value.items():
        if not _HEADER_NAME.fullmatch(name):
            raise CommandError("transfer.headers takes names that begin with X-")
        if not isinstance(text, str) or not _HEADER_VALUE.fullmatch(text):
            raise CommandError("transfer.headers takes values of at most 256 printable characters")
    return tuple(value.items())
