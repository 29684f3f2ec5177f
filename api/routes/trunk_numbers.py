"""Numbers on an account's own carriers (telephony specification, carrier trunks)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from api.http.endpoint import Context, Reply, Routes
from api.schemas.base import NoBody, NoQuery, RequestModel, ResponseModel, all_optional
from api.schemas.common import E164, Id, Name, Page, PerPage, Timestamp
from api.schemas.serializers import page_meta, shown
from callcontrol.errors import Conflict
from callcontrol.models import PhoneNumber

__all__ = ["routes"]


class RegisterNumber(RequestModel):
    """A number of the account's own carrier."""

    number: E164
    carrier_sid: Annotated[Id, Field(description="The account's carrier that serves it.")]
    app_sid: Annotated[Id, Field(description="Application of its inbound calls, unless bound.")] | None = None
    friendly_name: Name | None = None


class UpdateNumber(RequestModel):
    """Fields of a number to change; omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    not_accepted: ClassVar[Mapping[str, str]] = {
        "number": "cannot be changed; remove the number, and register the other one"
    }

    carrier_sid: Id = ""
    app_sid: Annotated[Id, Field(description="null: the carrier's application applies.")] | None = None
    friendly_name: Name | None = None


class TrunkNumberList(RequestModel):
    """Filters of the list of numbers."""

    carrier_sid: Id | None = None
    app_sid: Id | None = None
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


_NUMBERS = "/v1/trunk-portal/numbers"
_ONE = _NUMBERS + "/{number_sid}"

routes = Routes("trunks.read", "trunks.write", tag="carrier trunks")


@routes.post(_NUMBERS, response=TrunkNumberObject, success=201, errors=(Conflict,))
async def register_trunk_number(context: Context[RegisterNumber, NoQuery]) -> Reply:
    """
    Register a number on an own carrier.

    It can be used as caller-ID at once, and calls to it from the carrier are accepted.
    """
    body = context.body
    number = await context.storage.trunk_numbers.register(
        context.account_sid,
        body.number,
        body.carrier_sid,
        app_sid=body.app_sid,
        friendly_name=body.friendly_name,
    )
    return Reply(_json(number))


@routes.get(_NUMBERS, response=TrunkNumberObject, paged=True)
async def list_trunk_numbers(context: Context[NoBody, TrunkNumberList]) -> Reply:
    """List the numbers on own carriers, newest first."""
    query = context.query
    filters = query.model_dump(include={"carrier_sid", "app_sid"}, exclude_none=True)
    page = await context.storage.trunk_numbers.list(context.account_sid, filters, query.page, query.per_page)
    return Reply([_json(number) for number in page.items], page_meta(page))


@routes.patch(_ONE, response=TrunkNumberObject)
async def update_trunk_number(context: Context[UpdateNumber, NoQuery]) -> Reply:
    """
    Update a number on an own carrier.

    Omitted fields keep their values.
    """
    number = await context.storage.trunk_numbers.update(
        context.account_sid, context.path["number_sid"], context.body.model_dump(exclude_unset=True)
    )
    return Reply(_json(number))


@routes.delete(_ONE, errors=(Conflict,))
async def remove_trunk_number(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Remove a number from an own carrier.

    Refused while it has active calls.
    """
    await context.storage.trunk_numbers.remove(context.account_sid, context.path["number_sid"])
    return Reply(None)


def _json(number: PhoneNumber) -> dict[str, Any]:
    return shown(TrunkNumberObject, number, number_sid=number.phone_number_id, sid=number.phone_number_id)
