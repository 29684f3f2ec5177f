"""
Realtime speech models of vendors: the session that a customer describes, and its choice from a request.

The object has the fields `provider`, `model`, `instructions`, `voice`, `greeting`, `language`, `tools`,
`api_key` or `key`, `url`, `transcription` and `max_retries`; each wrong one is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, Final, Literal, get_args
from urllib.parse import quote, urlsplit

Provider = Literal["openai", "deepgram", "gemini", "elevenlabs", "ultravox"]
Role = Literal["agent", "user"]

PROVIDERS: Final[tuple[Provider, ...]] = get_args(Provider)
CALL_TOOLS: Final = ("transfer", "hangup", "hold", "send_digits")
"""Tools that act on the call itself; they take precedence over tools of the account with these names."""

MAX_INSTRUCTIONS_CHARS: Final = 20_000
MAX_GREETING_CHARS: Final = 2000
MAX_TOOLS: Final = 32
MAX_KEY_CHARS: Final = 512
MAX_MODEL_RETRIES: Final = 10
DEFAULT_MODEL_RETRIES: Final = 2
MAX_MODEL_URL_CHARS: Final = 2048

_MAX_NAME_CHARS: Final = 200
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_KEY: Final = re.compile(r"[!-~]+")
KEY_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}")
_TOOL: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_VISIBLE: Final = re.compile(r"[!-~]+")

_ADDRESSES: Final[Mapping[Provider, str]] = MappingProxyType(
    {
        "openai": "wss://api.openai.com/v1/realtime",
        "deepgram": "wss://agent.deepgram.com/v1/agent/converse",
        "gemini": "wss://generativelanguage.googleapis.com/ws/"
        "google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
        "elevenlabs": "wss://api.elevenlabs.io/v1/convai/conversation",
        "ultravox": "https://api.ultravox.ai/api/calls",
    }
)
# Vendors whose address is one of HTTP.
_BY_HTTP: Final[frozenset[Provider]] = frozenset({"ultravox"})
# Parameter of the URL that names the model, of vendors that have it there.
_MODEL_PARAMETERS: Final[Mapping[Provider, str]] = MappingProxyType(
    {"openai": "model", "elevenlabs": "agent_id"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """
    A session with a vendor's model, as a customer describes it.

    Attributes:
        model: The vendor's name of the model; of ElevenLabs the agent's identifier.
        tools: Names of the tools that the model may use: `CALL_TOOLS`, and those of the account.
        api_key: The vendor's key; None if `key` names one that the account has stored.
        transcription: Model that transcribes the caller, where the vendor has a choice; `none` for none.
        url: Address in place of the vendor's own.
    """

    provider: Provider
    model: str
    instructions: str | None = None
    voice: str | None = None
    greeting: str | None = None
    language: str | None = None
    tools: tuple[str, ...] = ()
    api_key: str | None = field(default=None, repr=False)
    key: str | None = None
    transcription: str | None = None
    url: str | None = None
    max_retries: int = DEFAULT_MODEL_RETRIES

    @property
    def address(self) -> str:
        """URL to connect to, or to send the request to; without any secret."""
        url, parameter = self.url or _ADDRESSES[self.provider], _MODEL_PARAMETERS.get(self.provider)
        if parameter is None:
            return url
        return f"{url}{'&' if urlsplit(url).query else '?'}{parameter}={quote(self.model, safe='')}"


@dataclass(frozen=True, slots=True)
class ModelTool:
    """A tool as a model sees it; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One utterance of a conversation so far."""

    role: Role
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSession:
    """
    A session to open.

    Attributes:
        turns: The conversation of an earlier connection that this one continues.
        resumption: The vendor's token for continuing it, of vendors that have one.
    """

    choice: ModelChoice
    api_key: str = field(repr=False)
    tools: tuple[ModelTool, ...] = ()
    turns: tuple[ModelTurn, ...] = ()
    resumption: str | None = field(default=None, repr=False)


def without_key(text: str, key: str) -> str:
    """
    Return a text of a vendor without the key, which some repeat in their words.

    A text that was cut off may end within the key; up to three characters of it say nothing.
    """
    text = text.replace(key, "[key]")
    for length in range(len(key) - 1, 3, -1):
        if text.endswith(key[:length]):
            return f"{text[:-length]}[key]"
    return text


def model_headers(session: ModelSession) -> list[tuple[str, str]]:
    """Return the headers of the upgrade request that show the vendor the key."""
    key = session.api_key
    match session.choice.provider:
        case "openai":
            return [("Authorization", f"Bearer {key}")]
        case "deepgram":
            return [("Authorization", f"Token {key}")]
        case "gemini":
            return [("x-goog-api-key", key)]
        case "elevenlabs" | "ultravox":
            # The request for the session has shown it; the URL that came of it is the secret here.
            return []


def read_model(fields: object) -> tuple[ModelChoice | None, dict[str, str]]:
    """Read the description of a session; returns the faults by field, and None if there are any."""
    if not isinstance(fields, Mapping):
        return None, {"": "must be an object with the fields provider and model"}
    faults = {str(name)[:100]: "is not a field of model" for name in fields if name not in _READERS}
    values: dict[str, Any] = {}
    for name, (reader, is_required) in _READERS.items():
        value = fields.get(name)
        if value is None:
            if is_required:
                faults[name] = "is required"
            continue
        fault, values[name] = reader(value)
        if fault is not None:
            faults[name] = fault
    if "url" not in faults and values.get("url") is not None:
        fault = _address_fault(values["url"], "https" if values.get("provider") in _BY_HTTP else "wss")
        faults |= {"url": fault} if fault is not None else {}
    if "api_key" in values and "key" in values:
        faults["key"] = "cannot be combined with api_key"
    elif "api_key" not in values and "key" not in values and not {"api_key", "key"} & faults.keys():
        faults["api_key"] = "is required, unless key names a stored key"
    return (None if faults else ModelChoice(**values)), faults


_Read = tuple[str | None, Any]


def _provider(value: object) -> _Read:
    if value not in PROVIDERS:
        return f"must be one of {', '.join(PROVIDERS)}", None
    return None, value


def _matching(pattern: re.Pattern[str], most: int, message: str) -> Callable[[object], _Read]:
    def read(value: object) -> _Read:
        if not isinstance(value, str) or len(value) > most or pattern.fullmatch(value) is None:
            return message, None
        return None, value

    return read


def _text(most: int) -> Callable[[object], _Read]:
    def read(value: object) -> _Read:
        # A lone surrogate is valid in JSON, but cannot be sent in UTF-8.
        if (
            not isinstance(value, str)
            or not 0 < len(value) <= most
            or any("\ud800" <= character <= "\udfff" for character in value)
        ):
            return f"must be a text of 1 to {most} characters", None
        return None, value

    return read


def _tools(value: object) -> _Read:
    message = f"must be a list of at most {MAX_TOOLS} different names of tools"
    if not isinstance(value, list | tuple) or len(value) > MAX_TOOLS:
        return message, None
    for name in value:
        if not isinstance(name, str) or _TOOL.fullmatch(name) is None:
            return message, None
    return (message, None) if len(set(value)) < len(value) else (None, tuple(value))


def _url(value: object) -> _Read:
    if not isinstance(value, str) or len(value) > MAX_MODEL_URL_CHARS or _VISIBLE.fullmatch(value) is None:
        return f"must have 1 to {MAX_MODEL_URL_CHARS} visible ASCII characters", None
    try:
        is_readable = urlsplit(value).port != 0
    except ValueError:
        is_readable = False
    return (None, value) if is_readable else ("has an unreadable host or port", None)


def _address_fault(url: str, scheme: str) -> str | None:
    """Fault of an address: its scheme is `scheme`, or for private addresses the same without TLS."""
    parts, plain = urlsplit(url), scheme.removesuffix("s")
    host = parts.hostname or ""
    if parts.scheme != scheme and not (parts.scheme == plain and _is_private(host)):
        return (
            f"must be a URL that starts with {scheme}://; {plain}:// would show your key, and is for private "
            "addresses only"
        )
    if not host or "@" in parts.netloc or "#" in url:
        return "must name a host, without user information or fragment"
    return None


def socket_url(value: object) -> str | None:
    """Return the fault of a URL that a vendor gives for its WebSocket; None if there is none."""
    fault, url = _url(value)
    return fault if fault is not None else _address_fault(url, "wss")


def _is_private(host: str) -> bool:
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host


def _retries(value: object) -> _Read:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_MODEL_RETRIES:
        return f"must be a whole number from 0 to {MAX_MODEL_RETRIES}", None
    return None, value


_named = _matching(
    _NAME, _MAX_NAME_CHARS, f"must be a name of at most {_MAX_NAME_CHARS} letters, digits and ._:/@-"
)
_READERS: Final[Mapping[str, tuple[Callable[[object], _Read], bool]]] = MappingProxyType(
    {
        "provider": (_provider, True),
        "model": (_named, True),
        "instructions": (_text(MAX_INSTRUCTIONS_CHARS), False),
        "voice": (_named, False),
        "greeting": (_text(MAX_GREETING_CHARS), False),
        "language": (_matching(_LANGUAGE, 20, "must be a language such as en or hi-IN"), False),
        "tools": (_tools, False),
        "api_key": (
            _matching(_KEY, MAX_KEY_CHARS, f"must be 1 to {MAX_KEY_CHARS} visible ASCII characters"),
            False,
        ),
        "key": (_matching(KEY_NAME, 64, "must be the name of a stored key"), False),
        "transcription": (_named, False),
        "url": (_url, False),
        "max_retries": (_retries, False),
    }
)
