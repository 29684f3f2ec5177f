"""Values of verbs: their rules, and the names of wrong ones."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urldefrag, urljoin, urlsplit

from callcontrol.calls.plan import RequestInstructions, Stream, WebhookFormat, WebhookMethod
from callcontrol.egress.url_policy import (
    HOOK_SCHEMES,
    SOCKET_SCHEMES,
    STREAM_SCHEMES,
    WEB_SCHEMES,
    CheckUrl,
    url_errors,
    wrong_scheme,
)
from callcontrol.errors import FieldError, RequestErrors
from callcontrol.models.parties import Target
from callcontrol.routing.targets import normalise_number, parse_target
from callcontrol.trunks.inbound_invite import Caller
from media.streams import StreamSetupError, choose_model, choose_stream


def is_session(url: str) -> bool:
    """Return True for the address of an application that is reached over a WebSocket."""
    try:
        return urlsplit(url).scheme.lower() in SOCKET_SCHEMES
    except ValueError:
        return False


def hook_url(session_url: str, hook: str) -> str:
    """Return the address of a hook in the session at an address."""
    return f"{urldefrag(session_url).url}#{quote(hook, safe='/')}"


@dataclass(frozen=True, slots=True)
class VerbRules:
    """
    Rules for verbs.

    ``allowed_countries`` may be dialled; ``prompts`` are the names that ``prompt:NAME`` may have, None any;
    ``check_url`` is ``Destinations.check_url``.
    """

    allowed_countries: Collection[str]
    prompts: Collection[str] | None
    check_url: CheckUrl


@dataclass(frozen=True, slots=True)
class WebhookDefaults:
    """Settings of the requests that verbs lead to: their format, and the fallback server."""

    format: WebhookFormat = "json"
    fallback: RequestInstructions | None = field(default=None)


@dataclass(slots=True)
class VerbValues(RequestErrors):
    """
    Reads values of verbs and collects their errors.

    ``caller_id`` is the number that a dialled party sees unless the verb says otherwise, ``caller`` the
    caller of an inbound call, whose number may be passed through; with ``may_reject`` a caller waits for the
    answer. Addresses without a host are relative to ``base_url``, if there is one.
    """

    rules: VerbRules
    caller_id: str | None
    caller: Caller | None = None
    base_url: str | None = None
    webhooks: WebhookDefaults = field(default_factory=WebhookDefaults)
    may_reject: bool = False

    def wrong(self, path: str, message: str) -> None:
        """Record a wrong value."""
        self.errors.append(FieldError(path, message))

    def check_url(self, path: str, url: str, schemes: tuple[str, ...]) -> None:
        """Refuse a URL that evidently leads where this server must not connect."""
        self.errors += url_errors(self.rules.check_url, path, url, schemes=schemes)

    def number(self, path: str, text: object) -> str | None:
        """A number in E.164, None when the text is none."""
        return self.read(lambda: normalise_number(text if isinstance(text, str) else "", field=path))

    def target(self, path: str, text: object) -> Target | None:
        """The target to dial, None when the text is invalid or the number may not be dialled."""
        given = text if isinstance(text, str) else ""
        return self.read(lambda: parse_target(given, self.rules.allowed_countries, field=path))

    def refuse_others(self, path: str, given: Mapping[str, Any], known: Collection[str], kind: str) -> None:
        """Refuse fields that a verb of this kind has not."""
        for name in given:
            if name != "verb" and name not in known:
                self.wrong(f"{path}.{str(name)[:100]}", f"is not a field of {kind}")

    def seconds(
        self, path: str, verb: Mapping[str, Any], name: str, default: float, low: float, high: float
    ) -> float:
        """A field that is a time within bounds, in seconds; the default when it is wrong or missing."""
        if (value := verb.get(name)) is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.wrong(f"{path}.{name}", f"must be {low:g} to {high:g} seconds")
            return default
        return float(value)

    def whole(self, path: str, verb: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
        """A field that is a whole number within bounds; the default when it is wrong or missing."""
        if (value := verb.get(name)) is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.wrong(f"{path}.{name}", f"must be {low} to {high}")
            return default
        return value

    def flag(self, path: str, verb: Mapping[str, Any], name: str, default: bool) -> bool:
        """A field that is a boolean; the default when it is wrong or missing."""
        if (value := verb.get(name)) is None:
            return default
        if not isinstance(value, bool):
            self.wrong(f"{path}.{name}", "must be true or false")
            return default
        return value

    def absolute(self, url: object) -> str:
        """An absolute URL; an empty text if the value is not text."""
        if not isinstance(url, str):
            return ""
        if self.webhooks.format == "jambonz" and self.base_url is not None and is_session(self.base_url):
            return url if not url or "://" in url else hook_url(self.base_url, url)
        try:
            whole = not url or self.base_url is None or bool(urlsplit(url).scheme)
            return url if whole else urljoin(self.base_url or "", url)
        except ValueError:
            return url

    def request_instructions(
        self, url_path: str, url: str, method_path: str, method: object, event: str = "call.redirected"
    ) -> list[RequestInstructions]:
        """The step that requests instructions from a server of the customer."""
        count = len(self.errors)
        schemes = HOOK_SCHEMES if self.webhooks.format == "jambonz" else WEB_SCHEMES
        if url:
            self.check_url(url_path, url, schemes)
        else:
            self.wrong(url_path, wrong_scheme(schemes))
        if method not in (None, "POST", "GET"):
            self.wrong(method_path, "must be POST or GET")
        if len(self.errors) > count:
            return []
        asked: WebhookMethod = "GET" if method == "GET" else "POST"
        return [
            RequestInstructions(
                url, asked, event, format=self.webhooks.format, fallback=self.webhooks.fallback
            )
        ]

    def stream(
        self, url_path: str, url: object, fields: Mapping[str, object], prefix: str = ""
    ) -> list[Stream]:
        """The step that connects a voice agent, with ``fields`` as in ``choose_stream``."""
        try:
            choice = choose_stream(url, fields)
        except StreamSetupError as error:
            for name, reason in error.faults.items():
                self.wrong(url_path if name == "stream_url" else prefix + name, reason)
            return []
        self.check_url(url_path, choice.url, STREAM_SCHEMES)
        return [Stream(choice, self.webhooks.fallback)]

    def model(self, path: str, fields: object) -> list[Stream]:
        """The step that connects a vendor's speech model, with ``fields`` as in ``choose_model``."""
        try:
            choice = choose_model(fields)
        except StreamSetupError as error:
            for name, reason in error.faults.items():
                self.wrong(f"{path}.{name}" if name else path, reason)
            return []
        count = len(self.errors)
        self.check_url(f"{path}.url", choice.url, HOOK_SCHEMES)
        return [Stream(choice, self.webhooks.fallback)] if len(self.errors) == count else []

    def action(self, path: str, verb: Mapping[str, Any], event: str) -> RequestInstructions | None:
        """The request for instructions after a verb, None when there is none."""
        url, method = verb.get("action_url"), verb.get("action_method")
        if url is None and method is None:
            return None
        found = self.request_instructions(
            f"{path}.action_url", self.absolute(url), f"{path}.action_method", method, event
        )
        return found[0] if found else None
