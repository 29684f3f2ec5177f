"""
Requests by HTTP that give the URL of a session's WebSocket, of vendors that want one.

Ultravox creates a call by it, with all of its configuration. ElevenLabs signs the URL of an agent, as private
agents want it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from media.streams.commands import read_object
from media.streams.dialects.json_audio import compact
from media.streams.dialects.speech_model import failed
from media.streams.dialects.ultravox import call_request, read_call
from media.streams.model import AgentFailed, CommandError
from media.streams.speech_models import ModelSession, socket_url

_SOON_USED_UP: Final = (402, 429)


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """
    A request; `read` returns the URL in its answer, and raises `CommandError` for one without any.

    Attributes:
        body: JSON of a POST; None for a GET.
    """

    url: str
    headers: dict[str, str] = field(repr=False)
    body: bytes | None
    read: Callable[[bytes], str]


def session_request(session: ModelSession, url: str) -> SessionRequest | None:
    """
    Return the request for a session at the address that was chosen; None where that is the WebSocket's own.

    Raises:
        CommandError: The session cannot be described: the schemas of its tools are too long.
    """
    match session.choice.provider:
        case "ultravox":
            headers = {"X-API-Key": session.api_key, "Content-Type": "application/json"}
            return SessionRequest(url, headers, call_request(session), read_call)
        case "elevenlabs":
            return SessionRequest(_signing(url), {"xi-api-key": session.api_key}, None, _read_signed)
    return None


def read_refusal(status: int, body: bytes) -> tuple[AgentFailed, bool]:
    """Return the error in an answer without a session, and True if it is one of the account's quota."""
    try:
        message = read_object(body)
    except CommandError:
        message = {}
    words = next((message[name] for name in ("detail", "message", "error") if name in message), message)
    text = words if isinstance(words, str) else compact(words)
    return failed(f"http_{status}", "" if text == "{}" else text), status in _SOON_USED_UP


def _signing(url: str) -> str:
    """Return the address that signs the URL of a WebSocket: by HTTP, in the folder of its path."""
    parts = urlsplit(url)
    scheme = "https" if parts.scheme == "wss" else "http"
    return parts._replace(scheme=scheme, path=f"{parts.path.rstrip('/')}/get-signed-url").geturl()


def _read_signed(body: bytes) -> str:
    url = read_object(body).get("signed_url")
    fault = socket_url(url)
    if fault is not None:
        raise CommandError(f"signed_url {fault}")
    return str(url)
