"""Request and response models of numbers on an account's own carriers."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from api.schemas.base import RequestModel, ResponseModel, all_optional
from api.schemas.common import E164, Name, Page, PerPage, Timestamp

__all__ = ["RegisterNumber", "TrunkNumberList", "TrunkNumberObject", "UpdateNumber"]

Sid = Annotated[str, Field(min_length=1, max_length=64)]


class RegisterNumber(RequestModel):
    """A number of the account's own carrier."""

    number: E164
    carrier_sid: Annotated[Sid, Field(description="The account's carrier that serves it.")]
    app_sid: Annotated[Sid, Field(description="Where its inbound calls go, unless it is bound.")] | None = (
        None
    )
    friendly_name: Name | None = None


class UpdateNumber(RequestModel):
    """Fields of a number to change; omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    carrier_sid: Sid = ""
    app_sid: Annotated[Sid, Field(description="null: calls go by the carrier's application.")] | None = None
    friendly_name: Name | None = None


class TrunkNumberList(RequestModel):
    """Filters of the list of numbers."""

    carrier_sid: Sid | None = None
    app_sid: Sid | None = None
    page: Page = 1
    per_page: PerPage = 20


class TrunkNumberObject(ResponseModel):
    """A number on one of the account's own carriers."""

    number_sid: Annotated[str, Field(description="The id by which /phone-numbers knows it, too.")]
    sid: Annotated[str, Field(description="Alias of number_sid.")]
    number: Annotated[str, Field(description="E.164.")]
    carrier_sid: str
    app_sid: str | None
    friendly_name: str | None
    created_at: Timestamp
    updated_at: Timestamp
