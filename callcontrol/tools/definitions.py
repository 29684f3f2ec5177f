"""Tools that accounts define, each an HTTP request to a server of the account, and their validation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, get_args

from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.tools.builtin import BUILTIN
from callcontrol.tools.models import Tool, ToolAnnotations
from callcontrol.tools.schemas import checked_schema
from callcontrol.webhooks.subscriptions import secret_errors

HttpMethod = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

MAX_TIMEOUT_S: Final = 30
DEFAULT_TIMEOUT_S: Final = 10
MAX_TITLE_CHARS: Final = 128
MAX_DESCRIPTION_CHARS: Final = 4000
MAX_HEADERS: Final = 20
_MAX_HEADER_CHARS: Final = 2048

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")
# Headers that this server sets itself, and headers of a connection.
_RESERVED: Final = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "content-type", "expect", "host", "keep-alive"),
        *("proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
        *("user-agent", "x-request-id"),
    }
)
_RESERVED_BEGINNINGS: Final = ("webhook-", "x-service-")
_REQUIRED: Final = ("name", "description", "url")
_FIELDS: Final = (
    *("name", "title", "description", "input_schema", "output_schema", "annotations"),
    *("url", "method", "headers", "timeout_s", "secret"),
)


@dataclass(frozen=True, slots=True)
class HttpTool:
    """
    A tool that sends a request to a server of its account.

    Arguments are a JSON object in the body of ``POST``, ``PUT`` and ``PATCH``, and the query of ``GET`` and
    ``DELETE``. ``headers`` are sent with each request and, like ``secret``, which signs it, are secret.
    """

    tool_id: str
    account_sid: str
    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    url: str
    created_at: datetime
    updated_at: datetime
    output_schema: Mapping[str, Any] | None = None
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    method: HttpMethod = "POST"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: int = DEFAULT_TIMEOUT_S
    secret: str = field(default="", repr=False)

    @property
    def sends_body(self) -> bool:
        """True if arguments are sent in the body, False for the query."""
        return self.method in ("POST", "PUT", "PATCH")

    def described(self, *, is_enabled: bool) -> Tool:
        """The tool as its users see it."""
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            kind="http",
            input_schema=self.input_schema,
            output_schema=self.output_schema,
            annotations=self.annotations,
            is_enabled=is_enabled,
        )


_NOTHING: Final[Mapping[str, Any]] = {"type": "object", "properties": {}, "additionalProperties": False}


def new_tool(
    tool_id: str, account_sid: str, values: Mapping[str, Any], *, secret: str, now: datetime
) -> HttpTool:
    """
    A tool with the given fields; ``secret`` signs its requests if the fields have none.

    Raises:
        ValidationFailed: Names every wrong, missing or unknown field. The reach of the URL is checked
            elsewhere.
    """
    blank = HttpTool(
        tool_id, account_sid, "", str(values.get("name", "")), "", _NOTHING, "", now, now, secret=secret
    )
    missing = [name for name in _REQUIRED if not values.get(name)]
    return _checked(blank, values, missing)


def changed_tool(former: HttpTool, values: Mapping[str, Any], now: datetime) -> HttpTool:
    """
    The tool with the given fields changed; None removes an output schema.

    Raises:
        ValidationFailed: Names every wrong or unknown field; a name cannot be changed.
    """
    emptied = [name for name, value in values.items() if value is None and name != "output_schema"]
    errors = [FieldError("name", "cannot be changed")] if "name" in values else []
    return _checked(replace(former, updated_at=now), values, emptied, errors)


def value_errors(values: Mapping[str, Any]) -> list[FieldError]:
    """Errors of the given fields, each by itself; None and unknown fields have none."""
    return [
        error
        for name, check in _CHECKS.items()
        if values.get(name) is not None
        for error in check(values[name])
    ]


def _checked(
    former: HttpTool, values: Mapping[str, Any], missing: list[str], errors: list[FieldError] | None = None
) -> HttpTool:
    errors = [*(errors or ()), *(FieldError(name, "is required") for name in missing)]
    errors += [FieldError(name, "is not a known field") for name in values if name not in _FIELDS]
    given = {name: value for name, value in values.items() if name in _FIELDS and name not in missing}
    errors += value_errors(given)
    if errors:
        raise ValidationFailed(errors)
    if isinstance(given.get("annotations"), Mapping):
        given["annotations"] = ToolAnnotations(**given["annotations"])
    return replace(former, **given)


def _name_errors(name: str) -> list[FieldError]:
    if _NAME.fullmatch(name) is None:
        return [FieldError("name", "must have 1 to 64 letters, digits, underscores and hyphens")]
    return [FieldError("name", "is that of a built-in tool")] if name in BUILTIN else []


def _length_errors(field_: str, most: int, text: str) -> list[FieldError]:
    return [] if 1 <= len(text) <= most else [FieldError(field_, f"must have 1 to {most} characters")]


def _method_errors(method: str) -> list[FieldError]:
    known = get_args(HttpMethod)
    return [] if method in known else [FieldError("method", f"must be one of {', '.join(known)}")]


def _timeout_errors(timeout_s: int) -> list[FieldError]:
    fits = 1 <= timeout_s <= MAX_TIMEOUT_S
    return [] if fits else [FieldError("timeout_s", f"must be 1 to {MAX_TIMEOUT_S}")]


def _headers_errors(headers: Mapping[str, str]) -> list[FieldError]:
    if len(headers) > MAX_HEADERS:
        return [FieldError("headers", f"must have at most {MAX_HEADERS} headers")]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for name, value in headers.items():
        place, lower = f"headers.{name[:100]}", name.lower()
        if _HEADER.fullmatch(name) is None:
            errors.append(FieldError(place, "is no name of a header"))
        elif lower in _RESERVED or lower.startswith(_RESERVED_BEGINNINGS):
            errors.append(FieldError(place, "is set by this server"))
        elif lower in seen:
            errors.append(FieldError(place, "is given twice"))
        if len(value) > _MAX_HEADER_CHARS or _HEADER_VALUE.fullmatch(value) is None:
            errors.append(
                FieldError(place, f"must be at most {_MAX_HEADER_CHARS} printable characters of ASCII")
            )
        seen.add(lower)
    return errors


def _schema_errors(field_: str, schema: Mapping[str, Any]) -> list[FieldError]:
    try:
        checked_schema(schema, field_)
    except ValidationFailed as refusal:
        return list(refusal.errors)
    return []


_CHECKS: Final[Mapping[str, Any]] = {
    "name": _name_errors,
    "title": partial(_length_errors, "title", MAX_TITLE_CHARS),
    "description": partial(_length_errors, "description", MAX_DESCRIPTION_CHARS),
    "method": _method_errors,
    "timeout_s": _timeout_errors,
    "secret": secret_errors,
    "headers": _headers_errors,
    "input_schema": partial(_schema_errors, "input_schema"),
    "output_schema": partial(_schema_errors, "output_schema"),
}
