"""
Validation of messages by type, and the limits of messaging networks.

Everything that can be checked in the message alone is checked here, with all errors at once. Opt-outs,
approval of templates and the account's permission to send are checked elsewhere.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from callcontrol.e164 import read_number
from callcontrol.egress.url_policy import WEB_SCHEMES, CheckUrl, url_errors
from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.messaging.models import MessageType, Template
from callcontrol.messaging.templates import DEFAULT_LANGUAGE

MAX_TEXT: Final = 4096
MAX_PARAMETER: Final = 1024
MAX_CAPTION: Final = 1024
MAX_FILENAME: Final = 240
MAX_BODY: Final = 1024
MAX_EDGE: Final = 60
"""Characters of a header or a footer."""
MAX_BUTTONS: Final = 3
MAX_TITLE: Final = 20
MAX_ROWS: Final = 10
MAX_ROW_TITLE: Final = 24
MAX_DESCRIPTION: Final = 72
MAX_ID: Final = 256

_PARTS: Final = ("text", "template", "media", "interactive")
_PART_OF: Final[Mapping[MessageType, str]] = {
    "text": "text",
    "template": "template",
    "media": "media",
    "buttons": "interactive",
    "list": "interactive",
}
_MEDIA_TYPES: Final = ("image", "video", "audio", "document")

Errors = Iterator[FieldError]


@dataclass(frozen=True, slots=True)
class SendMessage:
    """
    A request to send a message; exactly the part that its type requires may be given.

    The parts are spelled as in the API: ``template.bodyParameters``, ``interactive.buttons``.
    """

    to: str
    type: MessageType
    text: str | None = field(default=None, repr=False)
    template: Mapping[str, Any] | None = field(default=None, repr=False)
    media: Mapping[str, Any] | None = field(default=None, repr=False)
    interactive: Mapping[str, Any] | None = field(default=None, repr=False)


def checked(request: SendMessage, check_url: CheckUrl) -> tuple[str, dict[str, Any]]:
    """
    Validate a message; return the recipient's number and the content, as they are stored.

    Args:
        request: The message to send.
        check_url: ``Destinations.check_url``.

    Raises:
        ValidationFailed: Names every error.
    """
    parts = {name: part for name in _PARTS if (part := getattr(request, name)) is not None}
    errors = [*wrong_recipient("to", request.to), *wrong_parts(request.type, parts, check_url)]
    if errors:
        raise ValidationFailed(errors)
    wanted = _PART_OF[request.type]
    part = parts[wanted]
    if wanted == "template":
        part = {"language": DEFAULT_LANGUAGE, "bodyParameters": [], **part}
    return read_number(request.to), {wanted: part}


def wrong_recipient(field: str, text: str) -> Errors:
    """The error of a field that is no telephone number."""
    try:
        read_number(text)
    except ValueError as error:
        yield FieldError(field, str(error))


def wrong_parts(kind: MessageType, parts: Mapping[str, Any], check_url: CheckUrl) -> Errors:
    """Errors in the parts of a message of a type: a missing one, those of another type, wrong content."""
    wanted = _PART_OF[kind]
    for name in _PARTS:
        if name in parts and name != wanted:
            yield FieldError(name, f"is not part of a message of the type {kind}")
        if name not in parts and name == wanted:
            yield FieldError(name, f"is required for a message of the type {kind}")
    if wanted in parts:
        yield from _CHECKS[kind](parts[wanted], check_url)


def media_url_errors(field: str, url: str, check_url: CheckUrl) -> list[FieldError]:
    """Errors of the URL of a file; the network fetches it, so plain http is taken from everybody."""
    if not url.lower().startswith(("http://", "https://")):
        return [FieldError(field, "must be a URL that starts with https:// or http://")]
    judged = f"https:{url[5:]}" if url[:5].lower() == "http:" else url
    return url_errors(check_url, field, judged, schemes=WEB_SCHEMES)


def template_errors(content: Mapping[str, Any], template: Template | None) -> Errors:
    """The reason that a message cannot use ``template``, the approved template of its name or None."""
    wanted = content["template"]
    if template is None:
        reason = (
            f"is no approved template in {wanted['language']}; GET /api/v1/templates lists those there are"
        )
        yield FieldError("template.name", reason)
        return
    given = len(wanted["bodyParameters"])
    if given != template.variables:
        reason = f"must have one item for each variable of the template, {template.variables}; it has {given}"
        yield FieldError("template.bodyParameters", reason)


def _text(text: str, _: CheckUrl) -> Errors:
    yield from _sized("text", text, MAX_TEXT)


def _template(template: Mapping[str, Any], _: CheckUrl) -> Errors:
    if not template.get("name"):
        yield FieldError("template.name", "is required")
    for place, value in enumerate(template.get("bodyParameters") or ()):
        yield from _sized(f"template.bodyParameters[{place}]", value, MAX_PARAMETER)


def _media(media: Mapping[str, Any], check_url: CheckUrl) -> Errors:
    kind, url = media.get("type"), media.get("url")
    if kind not in _MEDIA_TYPES:
        yield FieldError("media.type", f"must be one of {', '.join(_MEDIA_TYPES)}")
    if not url:
        yield FieldError("media.url", "is required")
    else:
        yield from media_url_errors("media.url", url, check_url)
    if media.get("caption") is not None:
        yield from _sized("media.caption", media["caption"], MAX_CAPTION)
    if media.get("filename") is not None:
        yield from _sized("media.filename", media["filename"], MAX_FILENAME)


def _buttons(interactive: Mapping[str, Any], _: CheckUrl) -> Errors:
    yield from _interactive(interactive, MAX_BUTTONS, MAX_TITLE)
    for place, button in enumerate(interactive.get("buttons") or ()):
        if button.get("description") is not None:
            yield FieldError(f"interactive.buttons[{place}].description", "is for rows of lists only")


def _list(interactive: Mapping[str, Any], _: CheckUrl) -> Errors:
    yield from _interactive(interactive, MAX_ROWS, MAX_ROW_TITLE)
    for place, row in enumerate(interactive.get("buttons") or ()):
        if row.get("description") is not None:
            yield from _sized(
                f"interactive.buttons[{place}].description", row["description"], MAX_DESCRIPTION
            )


def _interactive(interactive: Mapping[str, Any], most: int, longest_title: int) -> Errors:
    """Validate the common parts of buttons and lists."""
    if interactive.get("body") is None:
        yield FieldError("interactive.body", "is required")
    else:
        yield from _sized("interactive.body", interactive["body"], MAX_BODY)
    for name in ("header", "footer"):
        if interactive.get(name) is not None:
            yield from _sized(f"interactive.{name}", interactive[name], MAX_EDGE)
    buttons = interactive.get("buttons") or ()
    if not 1 <= len(buttons) <= most:
        yield FieldError("interactive.buttons", f"must have 1 to {most} items")
    seen: set[str] = set()
    for place, button in enumerate(buttons):
        path = f"interactive.buttons[{place}]"
        yield from _sized(f"{path}.title", button["title"], longest_title)
        yield from _sized(f"{path}.id", button["id"], MAX_ID)
        if button["id"] in seen:
            yield FieldError(f"{path}.id", "is the id of an earlier one; each needs its own")
        seen.add(button["id"])


def _sized(path: str, text: str, most: int) -> Errors:
    if not text.strip():
        yield FieldError(path, "must not be empty")
    elif len(text) > most:
        yield FieldError(path, f"must have at most {most} characters")


_CHECKS: Final[Mapping[MessageType, Callable[[Any, CheckUrl], Errors]]] = {
    "text": _text,
    "template": _template,
    "media": _media,
    "buttons": _buttons,
    "list": _list,
}
