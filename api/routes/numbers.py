"""Phone numbers and their wiring (telephony specification, phone numbers)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.http.errors import ErrorStyle
from api.schemas.base import NoBody, NoQuery
from api.schemas.numbers import (
    Deregister,
    DeregisteredObject,
    InboundBinding,
    NumberChange,
    NumberList,
    PhoneNumberObject,
    WiringObject,
)
from api.schemas.serializers import number_configuration_json, number_json, page_meta
from callcontrol.errors import BindFailed, Conflict, InboundBound, InboundConflict, NotConfigured
from callcontrol.models import Binding

__all__ = ["ENDPOINTS"]


async def list_numbers(context: Context[NoBody, NumberList]) -> Reply:
    """Answer GET /phone-numbers."""
    query = context.query
    page = await context.storage.numbers.list(
        context.account_sid,
        query.page,
        query.per_page,
        status=query.status,
        number_type=query.number_type,
        region=query.region,
    )
    return Reply([number_json(number) for number in page.items], page_meta(page))


async def get_number(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /phone-numbers/:id."""
    return Reply(number_json(await context.storage.numbers.show(context.account_sid, context.path["id"])))


async def change_number(context: Context[NumberChange, NoQuery]) -> Reply:
    """Answer PATCH /phone-numbers/:id."""
    number = await context.storage.numbers.rename(
        context.account_sid, context.path["id"], context.body.friendly_name
    )
    return Reply(number_json(number))


async def release_number(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /phone-numbers/:id."""
    await context.storage.numbers.release(context.account_sid, context.path["id"])
    return Reply(None)


async def get_wiring(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /phone-numbers/:id/telephony."""
    return Reply(
        number_configuration_json(
            await context.storage.numbers.configuration(context.account_sid, context.path["id"])
        )
    )


async def register_number(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer POST /phone-numbers/:id/carrier."""
    return Reply(
        number_configuration_json(
            await context.storage.numbers.register(context.account_sid, context.path["id"])
        )
    )


async def deregister_number(context: Context[NoBody, Deregister]) -> Reply:
    """Answer DELETE /phone-numbers/:id/carrier."""
    state = await context.storage.numbers.deregister(
        context.account_sid, context.path["id"], force=context.query.force
    )
    return Reply({**number_configuration_json(state), "status": "deregistered"})


async def bind_number(context: Context[InboundBinding, NoQuery]) -> Reply:
    """Answer PUT /phone-numbers/:id/inbound."""
    state = await context.storage.numbers.bind(
        context.account_sid, context.path["id"], _binding(context.body), force=context.body.force
    )
    return Reply(number_configuration_json(state))


async def unbind_number(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /phone-numbers/:id/inbound."""
    return Reply(
        number_configuration_json(
            await context.storage.numbers.unbind(context.account_sid, context.path["id"])
        )
    )


def _binding(body: InboundBinding) -> Binding:
    given = body.model_dump(exclude={"force", "timeout", "target"}, exclude_none=True)
    # The binding checks the target, and answers bind_failed to an unknown one.
    return Binding(target=body.target, timeout_s=body.timeout, **given)  # type: ignore[arg-type]


_WIRING: dict[str, Any] = {"tag": "phone numbers", "style": ErrorStyle.WIRING}

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="GET",
        path="/v1/phone-numbers",
        handler=list_numbers,
        scope="numbers.read",
        summary="List phone numbers",
        tag="phone numbers",
        query=NumberList,
        response=PhoneNumberObject,
        paged=True,
    ),
    Endpoint(
        method="GET",
        path="/v1/phone-numbers/{id}",
        handler=get_number,
        scope="numbers.read",
        summary="Get a phone number",
        tag="phone numbers",
        response=PhoneNumberObject,
    ),
    Endpoint(
        method="PATCH",
        path="/v1/phone-numbers/{id}",
        handler=change_number,
        scope="numbers.write",
        summary="Change the label of a phone number",
        tag="phone numbers",
        body=NumberChange,
        response=PhoneNumberObject,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/phone-numbers/{id}",
        handler=release_number,
        scope="numbers.write",
        summary="Release a phone number",
        description="Removes it from the account permanently. Prepaid months are not refunded.",
        tag="phone numbers",
        success=204,
        response=None,
        errors=(Conflict,),
    ),
    Endpoint(
        method="GET",
        path="/v1/phone-numbers/{id}/telephony",
        handler=get_wiring,
        scope="numbers.read",
        summary="Get the wiring state of a number",
        response=WiringObject,
        **_WIRING,
    ),
    Endpoint(
        method="POST",
        path="/v1/phone-numbers/{id}/carrier",
        handler=register_number,
        scope="numbers.write",
        summary="Register a number on the carrier",
        description="Allows the number as caller-ID. Repeating it is safe.",
        response=WiringObject,
        errors=(NotConfigured,),
        **_WIRING,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/phone-numbers/{id}/carrier",
        handler=deregister_number,
        scope="numbers.write",
        summary="Deregister a number from the carrier",
        query=Deregister,
        response=DeregisteredObject,
        errors=(InboundBound, NotConfigured),
        **_WIRING,
    ),
    Endpoint(
        method="PUT",
        path="/v1/phone-numbers/{id}/inbound",
        handler=bind_number,
        scope="numbers.write",
        summary="Bind the inbound calls of a number",
        description="Also registers the number if it is not registered. Takes effect with the next call.",
        body=InboundBinding,
        response=WiringObject,
        errors=(BindFailed, InboundConflict, NotConfigured),
        **_WIRING,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/phone-numbers/{id}/inbound",
        handler=unbind_number,
        scope="numbers.write",
        summary="Unbind the inbound calls of a number",
        response=WiringObject,
        errors=(NotConfigured,),
        **_WIRING,
    ),
)
