"""
The verbs: what a customer may write that is to be done with a call, and the steps of a plan that they mean.

One reader serves requests to place a call and the answers of a customer's server. Every wrong value is named
by its path (``verbs[0].url``). What decides about a verb stands in one table, so that another dialect that
says the same things (an XML one) only has to be brought to these objects.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urljoin, urlsplit

from callcontrol.errors import DestinationForbidden, FieldError, ValidationFailed
from callcontrol.identity import Caller
from callcontrol.plan import Answer, Consult, Dial, Hangup, Party, Pause, Play, Reject, SendDtmf, Step, Stream
from callcontrol.routing import Target, normalise_number, parse_target
from media.streams import StreamSetupError, choose_stream

MAX_VERBS: Final = 50
NOT_YET: Final = ("gather", "record", "say")
"""Verbs of the interface that a later version brings; refused by name until then."""

REJECT_STATUSES: Final = (403, 404, 408, 410, 480, 484, 486, 488, 500, 502, 503, 504, 600, 603, 604, 606)

_MAX_URL_CHARS: Final = 2048
_MAX_PAUSE_S: Final = 600.0
_MAX_DIGITS: Final = 64
_MAX_LOOPS: Final = 100
_RING_S: Final = (5, 120)
_DIGITS: Final = frozenset("0123456789*#ABCDwW")
_STREAM_FIELDS: Final = frozenset(
    {"url", "sample_rate", "stream_protocol", "encoding", "custom_parameters", "stream_auth"}
    | {"stream_track", "stream_max_retries"}
)


class CheckUrl(Protocol):
    """Refuses URLs that must not be connected to; see ``interfaces.Destinations.check_url``."""

    def __call__(self, url: str, *, schemes: Sequence[str]) -> None:
        """Raise ValidationFailed or DestinationForbidden."""


@dataclass(frozen=True, slots=True)
class VerbRules:
    """
    What verbs are checked against.

    ``allowed_countries`` may be dialled; ``prompts`` are the names that ``prompt:NAME`` may have;
    ``check_url`` is ``Destinations.check_url``.
    """

    allowed_countries: Collection[str]
    prompts: Collection[str]
    check_url: CheckUrl


class VerbReader:
    """
    Reads verbs and keeps what is wrong with them in ``errors``.

    ``caller_id`` is whom a dialled party sees unless the verb says otherwise, ``caller`` whoever called us,
    whose number may be passed through. Addresses without a host count from ``base_url``, if there is one.
    """

    def __init__(
        self,
        rules: VerbRules,
        caller_id: str | None,
        *,
        caller: Caller | None = None,
        base_url: str | None = None,
    ) -> None:
        self.errors: list[FieldError] = []
        self._rules = rules
        self._caller_id = caller_id
        self._caller = caller
        self._base_url = base_url

    def read(self, path: str, verbs: object) -> list[Step]:
        """
        The steps that a list of verbs means, as far as they are right.

        Raises:
            Forbidden: A number may not be dialled.
        """
        if not isinstance(verbs, Sequence) or isinstance(verbs, str | bytes) or len(verbs) > MAX_VERBS:
            self.wrong(path, f"must be a list of at most {MAX_VERBS} verbs")
            return []
        steps: list[Step] = []
        for index, verb in enumerate(verbs):
            steps += self._verb(f"{path}[{index}]", verb)
        return steps

    def _verb(self, path: str, verb: object) -> Sequence[Step]:
        if not isinstance(verb, Mapping):
            self.wrong(path, "must be an object with the field verb")
            return []
        name = verb.get("verb")
        known = _VERBS.get(name) if isinstance(name, str) else None
        if known is None:
            later = isinstance(name, str) and name in NOT_YET
            message = f"{name} is not available yet" if later else f"must be one of {', '.join(_VERBS)}"
            self.wrong(f"{path}.verb", message)
            return []
        fields, read = known
        for field in verb:
            if field != "verb" and field not in fields:
                self.wrong(f"{path}.{str(field)[:100]}", f"is not a field of {name}")
        return read(self, path, verb)

    def _answer(self, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
        return [Answer()]

    def _play(self, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
        text, loops = verb.get("url"), verb.get("loop", 1)
        url = text if isinstance(text, str) else ""
        if not isinstance(loops, int) or isinstance(loops, bool) or not 1 <= loops <= _MAX_LOOPS:
            self.wrong(f"{path}.loop", f"must be 1 to {_MAX_LOOPS}")
            return []
        if url.startswith("prompt:"):
            if url[7:] not in self._rules.prompts:
                self.wrong(f"{path}.url", "names no prompt of this server")
                return []
            return [Play(url, loops)]
        url = self._absolute(url)
        if not url.lower().startswith(("http://", "https://")):
            self.wrong(f"{path}.url", "must be prompt:NAME or the http(s) URL of a WAV file")
            return []
        self.check_url(f"{path}.url", url, ("http", "https"))
        return [Play(url, loops)]

    def _pause(self, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
        length = verb.get("length", 1)
        number = isinstance(length, int | float) and not isinstance(length, bool)
        if not number or not 0 < length <= _MAX_PAUSE_S:
            self.wrong(f"{path}.length", f"must be more than 0 and at most {_MAX_PAUSE_S:.0f} seconds")
            return []
        return [Pause(float(length))]

    def _send_digits(self, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
        return self.digits(f"{path}.digits", verb.get("digits"))

    def digits(self, path: str, digits: object) -> list[Step]:
        """The step that sends digits, if they are some."""
        text = digits if isinstance(digits, str) else ""
        if not 1 <= len(text) <= _MAX_DIGITS or not _DIGITS.issuperset(text):
            self.wrong(path, f"must be 1 to {_MAX_DIGITS} of 0-9 * # A-D w W")
            return []
        return [SendDtmf(text)]

    def _dial(self, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
        targets = verb.get("target")
        if not isinstance(targets, Sequence) or len(targets) != 1 or not isinstance(targets[0], Mapping):
            self.wrong(f"{path}.target", "must be a list of one target")
            return []
        key = "sip_uri" if targets[0].get("type") == "sip" else "number"
        target = self.target(f"{path}.target[0].{key}", targets[0].get(key))
        low, high = _RING_S
        ring_s = 60 if verb.get("timeout") is None else verb["timeout"]
        if not isinstance(ring_s, int | float) or isinstance(ring_s, bool) or not low <= ring_s <= high:
            self.wrong(f"{path}.timeout", f"must be {low} to {high} seconds")
            return []
        party = self._party(path, target, verb.get("caller_id"), float(ring_s))
        return [] if party is None else [Dial(party)]

    def _party(self, path: str, target: Target | None, given: object, ring_s: float) -> Party | None:
        if given == "passthrough":
            if self._caller is None:
                self.wrong(f"{path}.caller_id", "nobody called: passthrough is for calls that come in")
            elif target is not None:
                caller = self._caller
                return Party(
                    target,
                    caller.number,
                    passthrough=True,
                    caller_name=caller.name,
                    withheld=caller.withheld,
                    ring_timeout_s=ring_s,
                    number=self._caller_id,
                    vouched=caller.vouched,
                )
            return None
        caller_id = self.number(f"{path}.caller_id", given) if given is not None else self._caller_id
        if target is None or caller_id is None:
            return None
        return Party(target, caller_id, ring_timeout_s=ring_s)

    def _stream(self, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
        return self.stream(verb.get("url"), verb, f"{path}.", f"{path}.url")

    def stream(self, url: object, fields: Mapping[str, object], prefix: str, url_path: str) -> list[Step]:
        """The step that connects a voice agent, by ``fields`` as ``choose_stream`` takes them."""
        try:
            choice = choose_stream(url, fields)
        except StreamSetupError as error:
            path = url_path if error.field == "stream_url" else prefix + error.field
            self.wrong(path, error.reason)
            return []
        self.check_url(url_path, choice.url, ("ws", "wss"))
        return [Stream(choice)]

    def _redirect(self, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
        url = verb.get("url")
        return self.consult(
            f"{path}.url",
            self._absolute(url) if isinstance(url, str) else "",
            f"{path}.method",
            verb.get("method"),
        )

    def consult(
        self, url_path: str, url: str, method_path: str, method: object, event: str = "call.redirected"
    ) -> list[Step]:
        """The step that asks a server of the customer's what to do."""
        count = len(self.errors)
        if not 1 <= len(url) <= _MAX_URL_CHARS:
            self.wrong(url_path, f"must be an http(s) URL of at most {_MAX_URL_CHARS} characters")
        else:
            self.check_url(url_path, url, ("http", "https"))
        if method not in (None, "POST", "GET"):
            self.wrong(method_path, "must be POST or GET")
        if len(self.errors) > count:
            return []
        return [Consult(url, "GET" if method == "GET" else "POST", event)]

    def _reject(self, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
        status = verb.get("status", 486)
        if isinstance(status, bool) or status not in REJECT_STATUSES:
            allowed = ", ".join(str(item) for item in REJECT_STATUSES)
            self.wrong(f"{path}.status", f"must be one of {allowed}")
            return []
        return [Reject(int(status))]

    def _hangup(self, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
        return [Hangup()]

    # --- values -------------------------------------------------------------------------------------------

    def check_url(self, path: str, url: str, schemes: Sequence[str]) -> None:
        """Refuse a URL that can be seen to lead where this server must not connect."""
        try:
            self._rules.check_url(url, schemes=schemes)
        except ValidationFailed as refusal:
            self.errors += [FieldError(path, error.message) for error in refusal.errors]
        except DestinationForbidden as refusal:
            self.wrong(path, refusal.message)

    def number(self, path: str, text: object) -> str | None:
        """A number in E.164, None when the text is none."""
        try:
            return normalise_number(text if isinstance(text, str) else "", field=path)
        except ValidationFailed as refusal:
            self.errors += refusal.errors
            return None

    def target(self, path: str, text: object) -> Target | None:
        """Whom to dial, None when the text says it wrong."""
        try:
            return parse_target(
                text if isinstance(text, str) else "", self._rules.allowed_countries, field=path
            )
        except ValidationFailed as refusal:
            self.errors += refusal.errors
            return None

    def wrong(self, path: str, message: str) -> None:
        """Note a wrong value."""
        self.errors.append(FieldError(path, message))

    def _absolute(self, url: str) -> str:
        try:
            whole = not url or self._base_url is None or bool(urlsplit(url).scheme)
            return url if whole else urljoin(self._base_url or "", url)
        except ValueError:
            return url


_Read = Callable[[VerbReader, str, Mapping[str, Any]], Sequence[Step]]
_VERBS: Final[Mapping[str, tuple[frozenset[str], _Read]]] = {
    "answer": (frozenset(), VerbReader._answer),
    "play": (frozenset({"url", "loop"}), VerbReader._play),
    "pause": (frozenset({"length"}), VerbReader._pause),
    "dial": (frozenset({"target", "caller_id", "timeout"}), VerbReader._dial),
    "stream": (_STREAM_FIELDS, VerbReader._stream),
    "send_digits": (frozenset({"digits"}), VerbReader._send_digits),
    "redirect": (frozenset({"url", "method"}), VerbReader._redirect),
    "reject": (frozenset({"status"}), VerbReader._reject),
    "hangup": (frozenset(), VerbReader._hangup),
}
