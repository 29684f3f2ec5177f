"""Request and response models of the tool-integration service."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from api.schemas.base import RequestModel, ResponseList, ResponseModel
from api.schemas.common import Day, Id, Name, Timestamp
from api.schemas.subscriptions import Secret, WebhookUrl, wrong_url
from callcontrol.aio.tokens import utc_now
from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.otp.otp import period_of
from callcontrol.tools.definitions import (
    DEFAULT_TIMEOUT_S,
    MAX_DESCRIPTION_CHARS,
    MAX_HEADERS,
    MAX_TIMEOUT_S,
    MAX_TITLE_CHARS,
    HttpMethod,
    value_errors,
)

__all__ = [
    "AppKeyObject",
    "AppKeyObjects",
    "CreateAppKey",
    "ExecuteTool",
    "ExecutedTool",
    "ManagedTool",
    "ManagedTools",
    "NewAppKey",
    "NewTool",
    "RegisterTool",
    "ToolObject",
    "ToolObjects",
    "UpdateTool",
    "UsageObject",
    "UsageQuery",
    "UsageRow",
]

_MAX_LISTED = 200


class Annotations(RequestModel):
    """Hints for clients that let a model use the tool."""

    read_only: Annotated[bool, Field(description="Changes nothing.")] = False
    destructive: Annotated[bool, Field(description="May do what cannot be undone.")] = True
    idempotent: Annotated[bool, Field(description="Does nothing more when it is repeated.")] = False
    open_world: Annotated[bool, Field(description="Reaches beyond this server.")] = True


class ExecuteTool(RequestModel):
    """Arguments of a tool execution."""

    arguments: Annotated[
        dict[str, Any], Field(description="What the tool's input_schema says.", default_factory=dict)
    ]


class ToolObject(ResponseModel):
    """A tool as its users see it."""

    name: str
    title: str
    description: str
    kind: Literal["builtin", "http"]
    input_schema: Annotated[dict[str, Any], Field(description="JSON Schema of the arguments.")]
    output_schema: Annotated[dict[str, Any] | None, Field(description="JSON Schema of the result, if known.")]
    annotations: dict[str, bool]


class ToolObjects(ResponseList[ToolObject]):
    """The tools that a key may use, by name."""


class ExecutedTool(ResponseModel):
    """Result of a tool execution."""

    tool: str
    result: Annotated[Any, Field(description="JSON, a text, or null when the tool answered nothing.")]
    duration_ms: int


_ToolName = Annotated[
    str,
    Field(
        description="Name for models; unique on the account, and never changed.",
        json_schema_extra={"pattern": "^[A-Za-z0-9_-]{1,64}$"},
        max_length=64,
    ),
]
_Title = Annotated[str, Field(min_length=1, max_length=MAX_TITLE_CHARS, description="For people.")]
_Description = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_DESCRIPTION_CHARS,
        description="For models: its effect, when to use it, and its result.",
    ),
]
_Schema = Annotated[
    dict[str, Any],
    Field(
        description="JSON Schema, draft 2020-12, of type object; $ref to its own $defs only.",
        json_schema_extra={"examples": [{"type": "object", "properties": {"city": {"type": "string"}}}]},
    ),
]
_Headers = Annotated[
    dict[str, str],
    Field(max_length=MAX_HEADERS, description="Sent with every request; their values are never shown."),
]
_Timeout = Annotated[int, Field(ge=1, le=MAX_TIMEOUT_S, description="Timeout of a request in seconds.")]


class _ToolFields(RequestModel):
    """Rules of both requests that define a tool."""

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the single fields; the reach of the URL is checked elsewhere."""
        return value_errors(sound) + wrong_url(sound)


class RegisterTool(_ToolFields):
    """A tool that sends requests to your server."""

    name: _ToolName
    description: _Description
    url: WebhookUrl
    title: _Title | None = None
    input_schema: _Schema | None = None
    output_schema: _Schema | None = None
    annotations: Annotations | None = None
    method: HttpMethod = "POST"
    headers: _Headers | None = None
    timeout_sec: _Timeout = DEFAULT_TIMEOUT_S
    secret: Secret | None = None


class UpdateTool(_ToolFields):
    """Fields of a tool to change; omitted fields keep their values."""

    not_accepted: ClassVar[Mapping[str, str]] = {
        "name": "cannot be changed; register a tool of the other name, and delete this one"
    }

    description: _Description | None = None
    url: WebhookUrl | None = None
    title: _Title | None = None
    input_schema: _Schema | None = None
    output_schema: _Schema | None = None
    annotations: Annotations | None = None
    method: HttpMethod | None = None
    headers: _Headers | None = None
    timeout_sec: _Timeout | None = None
    secret: Secret | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse null for all fields except the output schema."""
        return [
            FieldError(name, "must not be null")
            for name in cls.model_fields
            if name != "output_schema" and name in given and given[name] is None
        ]


class ManagedTool(ToolObject):
    """A tool as its account manages it; of a built-in one, only `is_enabled` can change."""

    is_enabled: bool
    url: str | None
    method: str | None
    headers: Annotated[list[str], Field(description="The names of its headers.")]
    timeout_sec: int | None
    created_at: Timestamp | None
    updated_at: Timestamp | None


class NewTool(ManagedTool):
    """A newly registered tool, with its secret."""

    secret: Annotated[str, Field(description="Shown this once.")]


class ManagedTools(ResponseList[ManagedTool]):
    """All tools of the account, by name."""


class CreateAppKey(RequestModel):
    """A new app key."""

    name: Name
    tools: (
        Annotated[
            list[str],
            Field(
                min_length=1,
                max_length=_MAX_LISTED,
                description="The tools that it opens; all of them, later ones too, when this is left out.",
            ),
        ]
        | None
    ) = None


class AppKeyObject(ResponseModel):
    """An app key; the key itself is never shown again."""

    id: str
    name: str | None
    tools: Annotated[list[str] | None, Field(description="The tools that it opens; null: all of them.")]
    prefix: Annotated[str, Field(description="How it begins, to tell keys apart.")]
    created_at: Timestamp
    expires_at: Annotated[Timestamp | None, Field(description="When a key that was rotated ends.")]


class NewAppKey(AppKeyObject):
    """A new app key, with the key itself."""

    key: Annotated[str, Field(description="Shown this once.")]


class AppKeyObjects(ResponseList[AppKeyObject]):
    """Valid app keys of the account, oldest first."""


class UsageQuery(RequestModel):
    """Filters of the usage."""

    start_date: Day | None = None
    end_date: Day | None = None
    tool: Annotated[str, Field(max_length=64)] | None = None
    key_id: Id | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse what is no period of days."""
        try:
            period_of(given.get("start_date"), given.get("end_date"), utc_now().date())
        except ValidationFailed as refusal:
            return list(refusal.errors)
        return []


class UsageRow(ResponseModel):
    """Usage of a tool by a key on a day."""

    day: Annotated[str, Field(json_schema_extra={"format": "date"})]
    tool: str
    key_id: str
    calls: int
    errors: Annotated[int, Field(description="Of the calls, those without a result.")]
    mean_ms: int
    max_ms: int


class UsageObject(ResponseModel):
    """Usage: totals and rows."""

    calls: int
    errors: int
    truncated: Annotated[bool, Field(description="There are more rows; ask for fewer days.")]
    rows: list[UsageRow]
