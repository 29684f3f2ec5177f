"""Request and response models of templates and of the sending channel."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from api.schemas.base import all_optional
from api.schemas.common import E164, Filled, Page, Timestamp
from api.schemas.messaging.base import CamelQuery, CamelRequest, CamelResponse
from callcontrol.errors import FieldError
from callcontrol.messaging.models import (
    MAX_DISPLAY_NAME_CHARACTERS,
    MAX_MESSAGES_PER_SECOND,
    TemplateCategory,
    TemplateStatus,
)
from callcontrol.messaging.templates import (
    DEFAULT_LANGUAGE,
    LANGUAGES,
    MAX_BODY_CHARACTERS,
    MAX_NAME_CHARACTERS,
    MAX_TEMPLATES,
    NAME,
    wrong_template,
)

__all__ = ["ChannelObject", "CreateTemplate", "TemplateList", "TemplateObject", "UpdateChannel"]

_Name = Annotated[
    str,
    Field(
        description="Lowercase letters, digits and underscores.",
        json_schema_extra={
            "pattern": f"^{NAME.pattern}$",
            "minLength": 1,
            "maxLength": MAX_NAME_CHARACTERS,
        },
    ),
]
_Language = Annotated[str, Field(max_length=64, json_schema_extra={"enum": sorted(LANGUAGES)})]
_Body = Annotated[
    str,
    Field(
        description="Variables are written {{1}}, {{2}} and so on, numbered without gaps.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_BODY_CHARACTERS},
    ),
]
_DisplayName = Annotated[Filled, Field(max_length=MAX_DISPLAY_NAME_CHARACTERS)]
_Rate = Annotated[int, Field(ge=1, le=MAX_MESSAGES_PER_SECOND)]


class CreateTemplate(CamelRequest):
    """A new template."""

    name: _Name
    category: TemplateCategory = "UTILITY"
    language: _Language = DEFAULT_LANGUAGE
    body: _Body

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the texts."""
        return wrong_template(sound.get("name"), sound.get("language"), sound.get("body"))


class TemplateList(CamelQuery):
    """Filter and page of the list of templates; default: all approved ones."""

    status: Annotated[
        Literal[TemplateStatus, "ALL"], Field(description="Those of one status only, or ALL.")
    ] = "APPROVED"
    page: Page = 1
    page_size: Annotated[int, Field(ge=1, le=MAX_TEMPLATES, description="How many at most.")] = MAX_TEMPLATES


class TemplateObject(CamelResponse):
    """A template: PENDING until the network has reviewed it; only an APPROVED one can be sent."""

    id: int
    name: str
    category: TemplateCategory
    language: str
    body: str
    variables: Annotated[int, Field(description="How many the body has.")]
    status: TemplateStatus
    rejection_reason: Annotated[str | None, Field(description="Reason for REJECTED or PAUSED.")]
    submitted: Annotated[bool, Field(description="Submitted to the network; false: it will be shortly.")]
    created_at: Timestamp
    updated_at: Annotated[Timestamp, Field(description="When the status was last changed.")]


class UpdateChannel(CamelRequest):
    """Fields of the channel to change; null resets one to its default, omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    number: (
        Annotated[E164, Field(description="An active number of the account; null for the sandbox's.")] | None
    ) = None
    display_name: Annotated[_DisplayName, Field(description="What recipients see.")] | None = None
    is_connected: bool = True
    messages_per_second: Annotated[_Rate, Field(description="Maximum rate of messages.")] | None = None


class ChannelObject(CamelResponse):
    """Channel from which the account sends messages."""

    number: str
    display_name: str
    is_connected: bool
    messages_per_second: int
    is_sandbox: Annotated[bool, Field(description="Whether the number is that of the sandbox.")]
