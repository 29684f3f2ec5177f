"""Phone numbers and their wiring (telephony specification, phone numbers)."""

from __future__ import annotations

from api.http.endpoint import Context, Reply, Routes
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
    number_json,
    wiring_json,
)
from api.schemas.serializers import page_meta
from callcontrol.errors import BindFailed, Conflict, InboundBound, InboundConflict, NotConfigured
from callcontrol.models import Binding

__all__ = ["routes"]

routes = Routes("numbers.read", "numbers.write", tag="phone numbers")


@routes.get("/v1/phone-numbers", response=PhoneNumberObject, paged=True)
async def list_numbers(context: Context[NoBody, NumberList]) -> Reply:
    """List phone numbers."""
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


@routes.get("/v1/phone-numbers/{id}", response=PhoneNumberObject)
async def get_number(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a phone number."""
    return Reply(number_json(await context.storage.numbers.show(context.account_sid, context.path["id"])))


@routes.patch("/v1/phone-numbers/{id}", response=PhoneNumberObject)
async def change_number(context: Context[NumberChange, NoQuery]) -> Reply:
    """Change the label of a phone number."""
    number = await context.storage.numbers.rename(
        context.account_sid, context.path["id"], context.body.friendly_name
    )
    return Reply(number_json(number))


@routes.delete("/v1/phone-numbers/{id}", errors=(Conflict,))
async def release_number(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Release a phone number.

    Removes it from the account permanently. Prepaid months are not refunded.
    """
    await context.storage.numbers.release(context.account_sid, context.path["id"])
    return Reply(None)


@routes.get("/v1/phone-numbers/{id}/telephony", response=WiringObject, style=ErrorStyle.WIRING)
async def get_wiring(context: Context[NoBody, NoQuery]) -> Reply:
    """Get the wiring state of a number."""
    return Reply(
        wiring_json(await context.storage.numbers.configuration(context.account_sid, context.path["id"]))
    )


@routes.post(
    "/v1/phone-numbers/{id}/carrier", response=WiringObject, errors=(NotConfigured,), style=ErrorStyle.WIRING
)
async def register_number(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Register a number on the carrier.

    Allows the number as caller-ID. Repeating it is safe.
    """
    return Reply(wiring_json(await context.storage.numbers.register(context.account_sid, context.path["id"])))


@routes.delete(
    "/v1/phone-numbers/{id}/carrier",
    response=DeregisteredObject,
    errors=(InboundBound, NotConfigured),
    style=ErrorStyle.WIRING,
)
async def deregister_number(context: Context[NoBody, Deregister]) -> Reply:
    """Deregister a number from the carrier."""
    state = await context.storage.numbers.deregister(
        context.account_sid, context.path["id"], force=context.query.force
    )
    return Reply({**wiring_json(state), "status": "deregistered"})


@routes.put(
    "/v1/phone-numbers/{id}/inbound",
    response=WiringObject,
    errors=(BindFailed, InboundConflict, NotConfigured),
    style=ErrorStyle.WIRING,
)
async def bind_number(context: Context[InboundBinding, NoQuery]) -> Reply:
    """
    Bind the inbound calls of a number.

    Also registers the number if it is not registered. Takes effect with the next call.
    """
    state = await context.storage.numbers.bind(
        context.account_sid, context.path["id"], _binding(context.body), force=context.body.force
    )
    return Reply(wiring_json(state))


@routes.delete(
    "/v1/phone-numbers/{id}/inbound", response=WiringObject, errors=(NotConfigured,), style=ErrorStyle.WIRING
)
async def unbind_number(context: Context[NoBody, NoQuery]) -> Reply:
    """Unbind the inbound calls of a number."""
    return Reply(wiring_json(await context.storage.numbers.unbind(context.account_sid, context.path["id"])))


def _binding(body: InboundBinding) -> Binding:
    given = body.model_dump(exclude={"force", "timeout", "target"}, exclude_none=True)
    # The binding checks the target, and answers bind_failed to an unknown one.
    return Binding(target=body.target, timeout_s=body.timeout, **given)  # type: ignore[arg-type]
