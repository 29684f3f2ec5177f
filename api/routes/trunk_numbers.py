"""Numbers on an account's own carriers (telephony specification, carrier trunks)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from api.http.endpoint import Context, Endpoint, Reply
from api.schemas.base import NoBody, NoQuery, RequestModel, ResponseModel, all_optional
from api.schemas.common import E164, Name, Page, PerPage, Timestamp
from api.schemas.serializers import page_meta, rfc3339
from callcontrol.errors import Conflict
from callcontrol.models import PhoneNumber

__all__ = ["ENDPOINTS"]

Sid = Annotated[str, Field(min_length=1, max_length=64)]


class RegisterNumber(RequestModel):
    """A number of the account's own carrier."""

    number: E164
    carrier_sid: Annotated[Sid, Field(description="The account's carrier that serves it.")]
    app_sid: Annotated[Sid, Field(description="Application of its inbound calls, unless bound.")] | None = (
        None
    )
    friendly_name: Name | None = None


class UpdateNumber(RequestModel):
    """Fields of a number to change; omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    carrier_sid: Sid = ""
    app_sid: Annotated[Sid, Field(description="null: the carrier's application applies.")] | None = None
    friendly_name: Name | None = None


class TrunkNumberList(RequestModel):
    """Filters of the list of numbers."""

    carrier_sid: Sid | None = None
    app_sid: Sid | None = None
    page: Page = 1
    per_page: PerPage = 20


class TrunkNumberObject(ResponseModel):
    """A number on one of the account's own carriers."""

    number_sid: Annotated[str, Field(description="Same id as in /phone-numbers.")]
    sid: Annotated[str, Field(description="Alias of number_sid.")]
    number: Annotated[str, Field(description="E.164.")]
    carrier_sid: str
    app_sid: str | None
    friendly_name: str | None
    created_at: Timestamp
    updated_at: Timestamp


async def register_trunk_number(context: Context[RegisterNumber, NoQuery]) -> Reply:
    """Answer POST /trunk-portal/numbers."""
    body = context.body
    number = await context.storage.trunk_numbers.register(
        context.account_sid,
        body.number,
        body.carrier_sid,
        app_sid=body.app_sid,
        friendly_name=body.friendly_name,
    )
    return Reply(_json(number))


async def list_trunk_numbers(context: Context[NoBody, TrunkNumberList]) -> Reply:
    """Answer GET /trunk-portal/numbers."""
    query = context.query
    filters = query.model_dump(include={"carrier_sid", "app_sid"}, exclude_none=True)
    page = await context.storage.trunk_numbers.list(context.account_sid, filters, query.page, query.per_page)
    return Reply([_json(number) for number in page.items], page_meta(page))


async def update_trunk_number(context: Context[UpdateNumber, NoQuery]) -> Reply:
    """Answer PATCH /trunk-portal/numbers/:number_sid."""
    number = await context.storage.trunk_numbers.update(
        context.account_sid, context.path["number_sid"], context.body.model_dump(exclude_unset=True)
    )
    return Reply(_json(number))


async def remove_trunk_number(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /trunk-portal/numbers/:number_sid."""
    await context.storage.trunk_numbers.remove(context.account_sid, context.path["number_sid"])
    return Reply(None)


def _json(number: PhoneNumber) -> dict[str, Any]:
    return {
        "number_sid": number.phone_number_id,
        "sid": number.phone_number_id,
        "number": number.number,
        "carrier_sid": number.carrier_sid,
        "app_sid": number.app_sid,
        "friendly_name": number.friendly_name,
        "created_at": rfc3339(number.created_at),
        "updated_at": rfc3339(number.updated_at),
    }


_NUMBERS = "/v1/trunk-portal/numbers"
_ONE = _NUMBERS + "/{number_sid}"
_READ: dict[str, Any] = {"tag": "carrier trunks", "scope": "trunks.read"}
_WRITE: dict[str, Any] = {"tag": "carrier trunks", "scope": "trunks.write"}

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_NUMBERS,
        handler=register_trunk_number,
        summary="Register a number on an own carrier",
        description="It can be used as caller-ID at once, and calls to it from the carrier are accepted.",
        success=201,
        body=RegisterNumber,
        response=TrunkNumberObject,
        errors=(Conflict,),
        **_WRITE,
    ),
    Endpoint(
        method="GET",
        path=_NUMBERS,
        handler=list_trunk_numbers,
        summary="List the numbers on own carriers, newest first",
        query=TrunkNumberList,
        response=TrunkNumberObject,
        paged=True,
        **_READ,
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        handler=update_trunk_number,
        summary="Update a number on an own carrier",
        description="Omitted fields keep their values.",
        body=UpdateNumber,
        response=TrunkNumberObject,
        **_WRITE,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=remove_trunk_number,
        summary="Remove a number from an own carrier",
        description="Refused while it has active calls.",
        success=204,
        response=None,
        errors=(Conflict,),
        **_WRITE,
    ),
)
