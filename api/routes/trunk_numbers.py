"""Numbers on an account's own carriers (telephony specification, carrier trunks)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import page_meta, rfc3339
from api.schemas.trunk_numbers import RegisterNumber, TrunkNumberList, TrunkNumberObject, UpdateNumber
from callcontrol.errors import Conflict
from callcontrol.models import PhoneNumber

__all__ = ["ENDPOINTS"]


async def register_trunk_number(context: Context[RegisterNumber, NoQuery]) -> Reply:
    """Answer POST /trunk-portal/numbers."""
    body = context.body
    number = await context.services.trunk_numbers.register(
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
    page = await context.services.trunk_numbers.list(context.account_sid, filters, query.page, query.per_page)
    return Reply([_json(number) for number in page.items], page_meta(page))


async def update_trunk_number(context: Context[UpdateNumber, NoQuery]) -> Reply:
    """Answer PATCH /trunk-portal/numbers/:number_sid."""
    number = await context.services.trunk_numbers.update(
        context.account_sid, context.path["number_sid"], context.body.model_dump(exclude_unset=True)
    )
    return Reply(_json(number))


async def remove_trunk_number(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /trunk-portal/numbers/:number_sid."""
    await context.services.trunk_numbers.remove(context.account_sid, context.path["number_sid"])
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
        description="It may be used as caller-ID at once, and calls to it from the carrier are taken.",
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
        description="Fields that are left out stay as they are.",
        body=UpdateNumber,
        response=TrunkNumberObject,
        **_WRITE,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=remove_trunk_number,
        summary="Remove a number from an own carrier",
        description="Refused while calls are up on it.",
        success=204,
        response=None,
        errors=(Conflict,),
        **_WRITE,
    ),
)
