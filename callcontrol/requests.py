"""
What may be asked of the calls over the API, and the plan that it means.

The API has checked JSON types and names; the values are checked here, and every wrong one is named by its
path in the request (``verbs[0].url``).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from callcontrol.errors import DestinationForbidden, FieldError, ValidationFailed
from callcontrol.plan import (
    DEFAULT_RING_TIMEOUT_S,
    DEFAULT_TIME_LIMIT_S,
    Dial,
    Hangup,
    Party,
    Pause,
    Plan,
    Play,
    SendDtmf,
    Step,
    Stream,
)
from callcontrol.routing import Target, normalise_number, parse_target
from media.streams import StreamSetupError, choose_stream

RecordingChannels = Literal["mono", "dual"]

DEFAULT_STATUS_EVENTS: Final = ("initiated", "ringing", "answered", "completed")
"""The events that a status webhook gets unless others are asked for."""

_MAX_VERBS: Final = 50
_MAX_PAUSE_S: Final = 600.0
_MAX_DIGITS: Final = 64
_DIGITS: Final = frozenset("0123456789*#ABCDwW")


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """A voice agent to stream to; ``fields`` are as ``media.streams.choose_stream`` takes them."""

    url: str
    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCall:
    """
    A call to be placed: whom to call, as which number, and what to do when it is answered.

    ``to`` is E.164, a 10-digit Indian number or a ``sip:`` address at a gateway of a carrier. Exactly one of
    ``stream`` and ``verbs`` says what to do; a verb is its JSON object. With neither the application
    ``app_sid`` says it (``callcontrol.application_calls``); ``stream_fields`` then replace those of its
    stream, and ``needs_stream`` asks for an application that has one.
    """

    from_: str
    to: str
    stream: StreamRequest | None = None
    verbs: Sequence[Mapping[str, Any]] | None = None
    timeout_s: float = DEFAULT_RING_TIMEOUT_S
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    record: bool = False
    recording_channels: RecordingChannels = "dual"
    send_digits: str | None = None
    caller_name: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    tag: str | None = None
    carrier_sid: str | None = None
    app_sid: str | None = None
    stream_fields: Mapping[str, object] = field(default_factory=dict)
    needs_stream: bool = False
    status_webhook_url: str | None = None
    status_webhook_events: Sequence[str] = DEFAULT_STATUS_EVENTS


class CheckUrl(Protocol):
    """Refuses URLs that must not be connected to; see ``interfaces.Destinations.check_url``."""

    def __call__(self, url: str, *, schemes: Sequence[str]) -> None:
        """Raise ValidationFailed or DestinationForbidden."""


class _Reader:
    """Reads the values of one request and keeps what is wrong with them."""

    def __init__(
        self,
        request: CreateCall,
        allowed_countries: Collection[str],
        prompts: Collection[str],
        check_url: CheckUrl,
    ) -> None:
        self.errors: list[FieldError] = []
        self._check_url = check_url
        self._request = request
        self._allowed = allowed_countries
        self._prompts = prompts
        self._caller_id: str | None = None

    def plan(self) -> Plan | None:
        request = self._request
        caller_id = self._caller_id = self._number("from", request.from_)
        target = self._target("to", request.to)
        steps = self._steps()
        if request.send_digits is not None:
            steps = [*self._digits("send_digits", request.send_digits), *steps]
        if request.status_webhook_url is not None:
            self._url("status_webhook_url", request.status_webhook_url, ("http", "https"))
        if caller_id is None or target is None or self.errors:
            return None
        party = Party(
            target,
            caller_id,
            caller_name=request.caller_name,
            ring_timeout_s=request.timeout_s,
            carrier_sid=request.carrier_sid,
            headers=tuple(request.headers.items()),
        )
        return Plan(
            tuple(steps),
            dial=party,
            record=request.record,
            recording_channels=1 if request.recording_channels == "mono" else 2,
            time_limit_s=request.time_limit_s,
        )

    def _steps(self) -> list[Step]:
        request = self._request
        if (request.stream is None) == (request.verbs is None):
            self._wrong("stream_url", "exactly one of stream_url and verbs must be given")
            return []
        if request.stream is not None:
            return self._stream(request.stream.url, request.stream.fields, "", "stream_url")
        verbs = request.verbs or ()
        if not 1 <= len(verbs) <= _MAX_VERBS:
            self._wrong("verbs", f"must have 1 to {_MAX_VERBS} verbs")
            return []
        steps: list[Step] = []
        for index, verb in enumerate(verbs):
            steps += self._verb(f"verbs[{index}]", verb)
        return steps

    def _verb(self, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
        match verb.get("verb"):
            case "play":
                return self._play(f"{path}.url", verb.get("url"))
            case "pause":
                return self._pause(f"{path}.length", verb.get("length"))
            case "dial":
                return self._dial(path, verb)
            case "stream":
                return self._stream(verb.get("url"), verb, f"{path}.", f"{path}.url")
            case "send_digits":
                return self._digits(f"{path}.digits", verb.get("digits"))
            case "hangup":
                return [Hangup()]
        self._wrong(f"{path}.verb", "must be one of play, pause, dial, stream, send_digits, hangup")
        return []

    def _play(self, path: str, url: object) -> Sequence[Step]:
        text = url if isinstance(url, str) else ""
        if text.startswith("prompt:"):
            if text[7:] not in self._prompts:
                self._wrong(path, "names no prompt of this server")
                return []
        elif not text.lower().startswith(("http://", "https://")):
            self._wrong(path, "must be prompt:NAME or the http(s) URL of a WAV file")
            return []
        else:
            self._url(path, text, ("http", "https"))
        return [Play(text)]

    def _pause(self, path: str, length: object) -> Sequence[Step]:
        number = isinstance(length, int | float) and not isinstance(length, bool)
        if not number or not 0 < float(str(length)) <= _MAX_PAUSE_S:
            self._wrong(path, f"must be more than 0 and at most {_MAX_PAUSE_S:.0f} seconds")
            return []
        return [Pause(float(str(length)))]

    def _digits(self, path: str, digits: object) -> Sequence[Step]:
        text = digits if isinstance(digits, str) else ""
        if not 1 <= len(text) <= _MAX_DIGITS or not _DIGITS.issuperset(text):
            self._wrong(path, f"must be 1 to {_MAX_DIGITS} of 0-9 * # A-D w W")
            return []
        return [SendDtmf(text)]

    def _dial(self, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
        targets = verb.get("target")
        if not isinstance(targets, Sequence) or len(targets) != 1 or not isinstance(targets[0], Mapping):
            self._wrong(f"{path}.target", "must be a list of one target")
            return []
        key = "sip_uri" if targets[0].get("type") == "sip" else "number"
        target = self._target(f"{path}.target[0].{key}", targets[0].get(key))
        given = verb.get("caller_id")
        caller_id = self._number(f"{path}.caller_id", given) if given is not None else self._caller_id
        if target is None or caller_id is None:
            return []
        return [Dial(Party(target, caller_id, ring_timeout_s=float(verb.get("timeout") or 60)))]

    def _stream(self, url: object, fields: Mapping[str, object], prefix: str, url_path: str) -> list[Step]:
        try:
            choice = choose_stream(url, fields)
        except StreamSetupError as error:
            path = url_path if error.field == "stream_url" else prefix + error.field
            self._wrong(path, error.reason)
            return []
        if choice.max_retries:
            self._wrong(f"{prefix}stream_max_retries", "is not available yet; leave it out")
        self._url(url_path, choice.url, ("ws", "wss"))
        return [Stream(choice)]

    def _url(self, path: str, url: str, schemes: Sequence[str]) -> None:
        """Refuse a URL that can be seen to lead where this server must not connect."""
        try:
            self._check_url(url, schemes=schemes)
        except ValidationFailed as refusal:
            self.errors += [FieldError(path, error.message) for error in refusal.errors]
        except DestinationForbidden as refusal:
            self._wrong(path, refusal.message)

    def _number(self, path: str, text: object) -> str | None:
        try:
            return normalise_number(text if isinstance(text, str) else "", field=path)
        except ValidationFailed as refusal:
            self.errors += refusal.errors
            return None

    def _target(self, path: str, text: object) -> Target | None:
        try:
            return parse_target(text if isinstance(text, str) else "", self._allowed, field=path)
        except ValidationFailed as refusal:
            self.errors += refusal.errors
            return None

    def _wrong(self, path: str, message: str) -> None:
        self.errors.append(FieldError(path, message))


def plan_of(
    request: CreateCall,
    allowed_countries: Collection[str],
    prompts: Collection[str],
    check_url: CheckUrl,
) -> Plan:
    """
    The plan that a request means.

    ``prompts`` are the names that ``prompt:NAME`` may have; ``check_url`` is ``Destinations.check_url``.

    Raises:
        ValidationFailed: Values are wrong; all of them are named.
        Forbidden: A number may not be dialled.
    """
    reader = _Reader(request, allowed_countries, prompts, check_url)
    plan = reader.plan()
    if plan is None:
        raise ValidationFailed(reader.errors)
    return plan
