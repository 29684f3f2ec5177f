"""
Choice of a stream's parameters from the customer's request.

The body of the request takes precedence over the query of the URL, and that over the defaults. A field that
differs between body and URL is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from media.streams.dialects import DIALECTS, MODEL_DIALECTS, ExotelDialect
from media.streams.dialects.audiosocket import AudioSocketDialect
from media.streams.model import (
    BasicAuth,
    BearerAuth,
    Encoding,
    StreamAuth,
    StreamEvent,
    StreamSetupError,
    StreamTrack,
)
from media.streams.speech_models import ModelChoice, read_model

P = ParamSpec("P")
T = TypeVar("T")

MAX_URL_CHARS = 2048
_MAX_PARAMETERS = 64
_MAX_PARAMETER_NAME_CHARS = 128
_MAX_PARAMETER_VALUE_CHARS = 1024
_MAX_RETRIES = 10

_ENCODINGS: dict[str, Encoding] = {"l16": "l16", "mulaw": "mulaw", "alaw": "alaw"}
_EVENTS: dict[str, StreamEvent] = {"speech": "speech", "buffer": "buffer", "hold": "hold"}
_RESERVED = ("stream_protocol", "stream_encoding", "sample-rate", "stream_events")
_SCHEMES = tuple(dict.fromkeys(scheme for dialect in DIALECTS.values() for scheme in dialect.schemes))
_WRONG_SCHEME = "must be a URL that starts with ws://, wss:// or audiosocket://"
_VISIBLE = re.compile(r"[!-~]+")
_PRINTABLE = re.compile(r"[ -~]{1,512}")
_TOKEN = re.compile(r"[!-~]{1,4096}")


@dataclass(frozen=True, slots=True)
class StreamChoice:
    """
    Parameters for reaching an agent.

    Attributes:
        url: Dialled unchanged; user information has moved to `auth`.
        tls: True if it is dialled with TLS.
        track: "both" if the agent also gets the audio that the party hears.
        events: Events of the agent in addition to those that all get.
        max_retries: Limit of reconnects of a socket that breaks during the call.
        by_default: Those of `protocol` and `encoding` that the customer did not request.
        model: Session with a vendor's speech model; None for an agent of the customer.
    """

    url: str
    protocol: str
    encoding: Encoding
    sample_rate: int
    custom_parameters: tuple[tuple[str, str], ...] = ()
    auth: StreamAuth | None = None
    track: StreamTrack = "inbound"
    max_retries: int = 0
    tls: bool = False
    events: frozenset[StreamEvent] = frozenset()
    by_default: frozenset[str] = frozenset()
    model: ModelChoice | None = None


def choose_stream(stream_url: object, fields: Mapping[str, object] | None = None) -> StreamChoice:
    """
    Determine the parameters for reaching an agent.

    `fields` are those of the request, unchecked, by their names in the interface: `stream_protocol`,
    `encoding`, `sample_rate`, `custom_parameters`, `stream_auth`, `stream_track`, `stream_max_retries`;
    None counts as absent. The default protocol is exotel; `under_default` applies that of the account.

    Raises:
        StreamSetupError: Fields are wrong, contradict the URL, or request an unsupported value; all of them
            are named.
    """
    body = fields or {}
    faults = _Faults()
    parts = faults.read(SplitResult("", "", "", "", ""), _split_url, stream_url)
    query = faults.read({}, _query, parts)
    is_read = not faults.found
    scheme = parts.scheme.lower()
    usual = AudioSocketDialect.name if scheme in AudioSocketDialect.schemes else ExotelDialect.name
    protocol = faults.read(usual, _protocol, body.get("stream_protocol"), query, usual)
    if is_read and "stream_protocol" not in faults.found:
        faults.read(None, _check_scheme, scheme, protocol)
    rate = faults.read(8000, _sample_rate, body.get("sample_rate"), query)
    coding = faults.read("l16", _encoding, body.get("encoding"), query, protocol, rate)
    # A URL that cannot be read may have said what the body leaves out.
    chosen = [body.get(name) for name in ("stream_protocol", "sample_rate", "encoding")]
    is_known = is_read or None not in chosen
    if is_known and not faults.found.keys() & {"stream_protocol", "sample_rate", "encoding"}:
        faults.read(None, _check_format, protocol, coding, rate)
    no_auth: tuple[str, BasicAuth | None] = "", None
    url, url_auth = faults.read(no_auth, _without_userinfo, parts, str(stream_url))
    parameters = faults.read((), _parameters, body.get("custom_parameters"), query)
    auth = faults.read(None, _auth, body.get("stream_auth"), url_auth)
    if auth is not None and protocol == AudioSocketDialect.name:
        faults.found.setdefault("stream_auth", f"{protocol} carries no credentials")
    # A protocol that is wrong or not known says nothing about the tracks.
    is_known = is_read or chosen[0] is not None
    several = "stream_protocol" in faults.found or not is_known or DIALECTS[protocol].both_tracks
    track = faults.read("inbound", _track, body.get("stream_track"), protocol, several)
    max_retries = faults.read(0, _max_retries, body.get("stream_max_retries"))
    events = faults.read(frozenset(), _events, query)
    faults.check()
    return StreamChoice(
        url=url,
        protocol=protocol,
        encoding=coding,
        sample_rate=rate,
        custom_parameters=parameters,
        auth=auth,
        track=track,
        max_retries=max_retries,
        by_default=frozenset(
            name
            for name, field, parameter in (
                ("protocol", "stream_protocol", "stream_protocol"),
                ("encoding", "encoding", "stream_encoding"),
            )
            # A URL of one protocol alone chooses that.
            if body.get(field) is None and parameter not in query and usual == ExotelDialect.name
        ),
        tls=scheme == "wss",
        events=events,
    )


def choose_model(fields: object) -> StreamChoice:
    """
    Determine the parameters for reaching a vendor's speech model.

    `fields` is the customer's object, unchecked; see `media.streams.speech_models`.

    Raises:
        StreamSetupError: Fields are wrong or missing; all of them are named.
    """
    model, faults = read_model(fields)
    if model is None:
        name, reason = next(iter(faults.items()))
        raise StreamSetupError(name, reason, faults)
    encoding, sample_rate = MODEL_DIALECTS[model.provider].formats[0]
    return StreamChoice(
        url=model.address,
        protocol=model.provider,
        encoding=encoding,
        sample_rate=sample_rate,
        max_retries=model.max_retries,
        tls=urlsplit(model.address).scheme.lower() in ("wss", "https"),
        model=model,
    )


def under_default(choice: StreamChoice, protocol: str) -> StreamChoice:
    """
    Return the same choice with `protocol`, unless the customer requested another one.

    The default is not applied if it does not support the requested encoding or the rate.
    """
    if "protocol" not in choice.by_default or protocol == choice.protocol:
        return choice
    if urlsplit(choice.url).scheme.lower() not in DIALECTS[protocol].schemes:
        return choice
    for encoding, rate in DIALECTS[protocol].formats:
        asked = rate == choice.sample_rate and encoding == choice.encoding
        if asked or ("encoding" in choice.by_default and rate == choice.sample_rate):
            return replace(choice, protocol=protocol, encoding=encoding)
    return choice


class _Faults:
    """Collects the faults of a stream's fields, one for each; a default takes the place of a wrong value."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def read(self, default: T, reader: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return reader(*args, **kwargs)
        except StreamSetupError as fault:
            self.found.setdefault(fault.field, fault.reason)
            return default

    def check(self) -> None:
        for field, reason in self.found.items():
            raise StreamSetupError(field, reason, self.found)


def _split_url(value: object) -> SplitResult:
    if not isinstance(value, str) or not value:
        raise StreamSetupError("stream_url", _WRONG_SCHEME)
    if len(value) > MAX_URL_CHARS:
        raise StreamSetupError("stream_url", f"must not be longer than {MAX_URL_CHARS} characters")
    if not _VISIBLE.fullmatch(value):
        raise StreamSetupError("stream_url", "must be ASCII without spaces; encode the rest with %")
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise StreamSetupError("stream_url", "has an unreadable host or port") from None
    scheme = parts.scheme.lower()
    if scheme not in _SCHEMES:
        raise StreamSetupError("stream_url", _WRONG_SCHEME)
    if not parts.hostname or port == 0:
        raise StreamSetupError("stream_url", "must name a host, and a port other than 0 if any")
    if scheme in AudioSocketDialect.schemes and (
        port is None or "@" in parts.netloc or parts.path.strip("/")
    ):
        raise StreamSetupError(
            "stream_url", "must be audiosocket://host:port, without user, password and path"
        )
    # RFC 6455 3 has no fragments in these URLs.
    if "#" in value:
        raise StreamSetupError("stream_url", "must not have a fragment (#)")
    return parts


def _query(parts: SplitResult) -> dict[str, str]:
    try:
        pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        raise StreamSetupError("stream_url", f"has more than {_MAX_PARAMETERS} query parameters") from None
    return dict(pairs)


def _agreed(field_name: str, body: object, query: Mapping[str, str], name: str) -> str | None:
    """Return the value from the body, else from the query; if both are present they must agree."""
    in_url = query.get(name)
    if body is None:
        return in_url
    if not isinstance(body, str):
        raise StreamSetupError(field_name, "must be a string")
    if in_url is not None and in_url != body:
        raise StreamSetupError(field_name, f"disagrees with {name} in stream_url")
    return body


def _protocol(body: object, query: Mapping[str, str], usual: str) -> str:
    protocol = _agreed("stream_protocol", body, query, "stream_protocol") or usual
    if protocol not in DIALECTS:
        raise StreamSetupError("stream_protocol", f"must be one of {', '.join(DIALECTS)}")
    return protocol


def _check_scheme(scheme: str, protocol: str) -> None:
    schemes = DIALECTS[protocol].schemes
    if scheme not in schemes:
        wanted = " or ".join(f"{name}://" for name in schemes)
        raise StreamSetupError("stream_protocol", f"{protocol} needs a stream_url that begins with {wanted}")


def _sample_rate(body: object, query: Mapping[str, str]) -> int:
    text = query.get("sample-rate")
    if text is not None and text not in ("8000", "16000"):
        raise StreamSetupError("sample_rate", "sample-rate in stream_url must be 8000 or 16000")
    in_url = int(text) if text is not None else None
    if body is None:
        return in_url or 8000
    if not isinstance(body, int) or isinstance(body, bool) or body not in (8000, 16000):
        raise StreamSetupError("sample_rate", "must be 8000 or 16000")
    if in_url is not None and in_url != body:
        raise StreamSetupError("sample_rate", "disagrees with sample-rate in stream_url")
    return body


def _encoding(body: object, query: Mapping[str, str], protocol: str, rate: int) -> Encoding:
    name = _agreed("encoding", body, query, "stream_encoding")
    if name is None:
        formats = DIALECTS[protocol].formats
        return next((coding for coding, offered in formats if offered == rate), formats[0][0])
    if name not in _ENCODINGS:
        raise StreamSetupError("encoding", f"must be one of {', '.join(_ENCODINGS)}")
    return _ENCODINGS[name]


def _check_format(protocol: str, encoding: Encoding, sample_rate: int) -> None:
    formats = DIALECTS[protocol].formats
    if (encoding, sample_rate) in formats:
        return
    offered = ", ".join(f"{coding} at {rate}" for coding, rate in sorted(formats))
    known = encoding in {coding for coding, _ in formats}
    raise StreamSetupError("sample_rate" if known else "encoding", f"{protocol} carries {offered}")


def _parameters(body: object, query: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    merged = {name: value for name, value in query.items() if name not in _RESERVED}
    if body is not None:
        if not isinstance(body, Mapping):
            raise StreamSetupError("custom_parameters", "must be an object of strings")
        merged.update(body)
    if len(merged) > _MAX_PARAMETERS:
        raise StreamSetupError("custom_parameters", f"must not have more than {_MAX_PARAMETERS} entries")
    for name, value in merged.items():
        _check_parameter(name, value)
    return tuple(merged.items())


def _check_parameter(name: object, value: object) -> None:
    if not isinstance(name, str) or not isinstance(value, str):
        raise StreamSetupError("custom_parameters", "must be an object of strings")
    if len(name) > _MAX_PARAMETER_NAME_CHARS or len(value) > _MAX_PARAMETER_VALUE_CHARS:
        raise StreamSetupError(
            "custom_parameters",
            f"takes names of at most {_MAX_PARAMETER_NAME_CHARS} characters"
            f" and values of at most {_MAX_PARAMETER_VALUE_CHARS}",
        )


def _without_userinfo(parts: SplitResult, url: str) -> tuple[str, BasicAuth | None]:
    """Remove user information from a URL, otherwise unchanged (RFC 6455 3 has no place for it)."""
    userinfo, at, _ = parts.netloc.rpartition("@")
    if not at:
        return url, None
    username, _, password = userinfo.partition(":")
    auth = _basic("stream_url", unquote(username), unquote(password))
    plain = url.replace(f"//{userinfo}@", "//", 1)
    # Brackets in the user information can complement ones that the host lacks.
    _split_url(plain)
    return plain, auth


def _auth(body: object, url_auth: BasicAuth | None) -> StreamAuth | None:
    if body is None:
        return url_auth
    auth = _read_auth(body)
    if url_auth is not None and url_auth != auth:
        raise StreamSetupError("stream_auth", "disagrees with the user and password in stream_url")
    return auth


def _read_auth(body: object) -> StreamAuth:
    fields: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
    kind = fields.get("type")
    if kind == "basic" and set(fields) == {"type", "username", "password"}:
        return _basic("stream_auth", fields["username"], fields["password"])
    if kind == "bearer" and set(fields) == {"type", "token"}:
        token = fields["token"]
        if isinstance(token, str) and _TOKEN.fullmatch(token):
            return BearerAuth(token)
        raise StreamSetupError("stream_auth", "token must be visible ASCII characters")
    raise StreamSetupError(
        "stream_auth", "must be {type: basic, username, password} or {type: bearer, token}, and nothing else"
    )


def _basic(field_name: str, username: object, password: object) -> BasicAuth:
    for value in (username, password):
        if not isinstance(value, str) or (value and not _PRINTABLE.fullmatch(value)):
            raise StreamSetupError(field_name, "user and password must be printable ASCII characters")
    # RFC 7617 2: the first colon ends the user name.
    if not username or ":" in str(username):
        raise StreamSetupError(field_name, "the user name must not be empty nor hold a colon")
    return BasicAuth(str(username), str(password))


def _track(value: object, protocol: str, several: bool) -> StreamTrack:
    if value in (None, "inbound"):
        return "inbound"
    if value != "both":
        raise StreamSetupError("stream_track", "must be inbound or both")
    if not several:
        raise StreamSetupError("stream_track", f"{protocol} carries one track; use inbound")
    return "both"


def _events(query: Mapping[str, str]) -> frozenset[StreamEvent]:
    events: set[StreamEvent] = set()
    for name in filter(None, query.get("stream_events", "").split(",")):
        if name not in _EVENTS:
            raise StreamSetupError("stream_url", f"stream_events takes {', '.join(_EVENTS)}")
        events.add(_EVENTS[name])
    return frozenset(events)


def _max_retries(value: object) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_RETRIES:
        raise StreamSetupError("stream_max_retries", f"must be a whole number from 0 to {_MAX_RETRIES}")
    return value
