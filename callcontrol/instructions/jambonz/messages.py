"""
Messages between this server and an application over a WebSocket, as jambonz has them, without I/O.

The application answers ``session:new``, ``session:redirect`` and ``verb:hook`` by an ``ack`` with verbs, and
may send commands at any time. The hooks of its verbs are names, which its own session tells apart: they are
kept behind ``#`` in the address of the connection.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import unquote, urldefrag

from callcontrol.calls.events.commands import (
    DigitsRequested,
    HangupRequested,
    ListenRequested,
    LiveCommand,
    MuteRequested,
    RecordingRequested,
)
from callcontrol.calls.hangup_cause import NORMAL_CLEARING
from callcontrol.calls.records.call_info import info_body
from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.instructions.jambonz.verbs import RECORDING_ACTIONS

SUBPROTOCOL: Final = "ws.jambonz.org"

MessageType = Literal["session:new", "session:redirect", "session:reconnect", "verb:hook", "jambonz:error"]

_KEYS: Final = frozenset("0123456789*#ABCDwW")
_MAX_KEYS: Final = 64
_STEREO: Final = 2


@dataclass(frozen=True, slots=True)
class Ack:
    """Answer to the message ``msgid``; ``verbs`` is None when there are none."""

    msgid: str
    verbs: object


@dataclass(frozen=True, slots=True)
class Redirect:
    """Verbs to do at once, instead of those in progress."""

    verbs: object


@dataclass(frozen=True, slots=True)
class Redirection:
    """Another server to ask for verbs."""

    hook: str
    method: str


@dataclass(frozen=True, slots=True)
class DubOrder:
    """A change of a track, by the fields of the verb ``dub``."""

    fields: Mapping[str, Any]


def hook_of(url: str) -> tuple[str, str]:
    """Return the address of a session, and the hook in it, empty for the session itself."""
    address, fragment = urldefrag(url)
    return address, unquote(fragment)


def written(
    kind: MessageType, msgid: str, call_sid: str, data: Mapping[str, Any], hook: str | None = None
) -> str:
    """Write a message."""
    named = {} if hook is None else {"hook": hook}
    return info_body({"type": kind, "msgid": msgid, "call_sid": call_sid, **named, "data": data}).decode()


def read_message(text: str) -> Ack | Redirect | Redirection | DubOrder | LiveCommand:
    """
    Parse a message of an application.

    Raises:
        ValidationFailed: It cannot be read, or asks for what is not done.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise ValidationFailed.of("message", "must be JSON") from None
    if not isinstance(message, Mapping):
        raise ValidationFailed.of("message", "must be an object")
    match message.get("type"):
        case "ack":
            msgid = message.get("msgid")
            if not isinstance(msgid, str):
                raise ValidationFailed.of("msgid", "must be a string")
            return Ack(msgid, message.get("data"))
        case "command":
            return _command(message)
    raise ValidationFailed.of("type", "must be ack or command")


def _command(message: Mapping[str, Any]) -> Redirect | Redirection | DubOrder | LiveCommand:
    name, data = message.get("command"), message.get("data")
    if name == "redirect" and isinstance(data, list):
        return _redirect(message, data)
    body: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    match name, body:
        case "redirect", {"call_hook": hook}:
            return _redirection(hook)
        case "call:status", {"call_status": "completed"}:
            return HangupRequested("api", NORMAL_CLEARING)
        case (("mute:status" | "conf:mute-status"), _):
            muted = body.get("mute_status", body.get("conf_mute_status"))
            if muted in ("mute", "unmute"):
                return MuteRequested("a", says=muted == "mute")
        case "listen:status", {"listen_status": "pause" | "silence" | "resume" as status}:
            return ListenRequested(status)
        case "record", {"action": str(action)} if action in RECORDING_ACTIONS:
            return RecordingRequested(RECORDING_ACTIONS[action], _STEREO)
        case "dub", {"action": str()}:
            return DubOrder(body)
        case "dtmf", {"digit": str(keys)} if 1 <= len(keys) <= _MAX_KEYS and _KEYS.issuperset(keys):
            return DigitsRequested("a", keys)
    shown = name[:50] if isinstance(name, str) else "of this kind"
    raise ValidationFailed.of("command", f"{shown} is not available, or lacks what it needs")


def _redirect(message: Mapping[str, Any], verbs: list[Any]) -> Redirect:
    if message.get("queueCommand") is True:
        raise ValidationFailed.of("queueCommand", "is not available: verbs replace those in progress")
    return Redirect(verbs)


def _redirection(hook: object) -> Redirection:
    url = hook.get("url") if isinstance(hook, Mapping) else hook
    method = hook.get("method", "POST") if isinstance(hook, Mapping) else "POST"
    if not isinstance(url, str) or method not in ("POST", "GET"):
        errors = [FieldError("call_hook", "must be a URL, or an object with url and method")]
        raise ValidationFailed(errors)
    return Redirection(url, method)
