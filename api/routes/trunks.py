"""An account's own carriers and gateways (telephony specification, carrier trunks)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import carrier_json, gateway_json, page_meta
from api.schemas.trunks import (
    CarrierObject,
    CreateCarrier,
    CreateGateway,
    GatewayObject,
    Paging,
    UpdateCarrier,
    UpdateGateway,
)
from callcontrol.errors import Conflict
from callcontrol.models import Carrier, Gateway

__all__ = ["ENDPOINTS"]


async def create_carrier(context: Context[CreateCarrier, NoQuery]) -> Reply:
    """Answer POST /trunk-portal/carriers."""
    values = context.body.model_dump()
    values["codecs"] = tuple(values["codecs"])
    carrier = await context.services.trunks.create_carrier(context.account_sid, values)
    return Reply(_carrier(context, carrier))


async def list_carriers(context: Context[NoBody, Paging]) -> Reply:
    """Answer GET /trunk-portal/carriers."""
    query = context.query
    page = await context.services.trunks.list_carriers(context.account_sid, query.page, query.per_page)
    return Reply([_carrier(context, carrier) for carrier in page.items], page_meta(page))


async def get_carrier(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /trunk-portal/carriers/:carrier_sid."""
    carrier = await context.services.trunks.get_carrier(context.account_sid, context.path["carrier_sid"])
    return Reply(_carrier(context, carrier))


async def update_carrier(context: Context[UpdateCarrier, NoQuery]) -> Reply:
    """Answer PATCH /trunk-portal/carriers/:carrier_sid."""
    carrier = await context.services.trunks.update_carrier(
        context.account_sid, context.path["carrier_sid"], context.body.model_dump(exclude_unset=True)
    )
    return Reply(_carrier(context, carrier))


async def delete_carrier(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /trunk-portal/carriers/:carrier_sid."""
    await context.services.trunks.delete_carrier(context.account_sid, context.path["carrier_sid"])
    return Reply(None)


async def create_gateway(context: Context[CreateGateway, NoQuery]) -> Reply:
    """Answer POST /trunk-portal/carriers/:carrier_sid/gateways."""
    values = context.body.model_dump()
    if "port" not in context.body.model_fields_set:
        del values["port"]  # its default depends on the protocol
    elif values["port"] is None:
        values["port"] = 0
    gateway = await context.services.trunks.create_gateway(
        context.account_sid, context.path["carrier_sid"], values
    )
    return Reply(_gateway(context, gateway))


def _carrier(context: Context[Any, Any], carrier: Carrier) -> dict[str, Any]:
    return carrier_json(carrier, context.services.calls.registrations(carrier.carrier_sid))


def _gateway(context: Context[Any, Any], gateway: Gateway) -> dict[str, Any]:
    return gateway_json(gateway, context.services.calls.gateways.of(gateway.gateway_sid))


async def list_gateways(context: Context[NoBody, Paging]) -> Reply:
    """Answer GET /trunk-portal/carriers/:carrier_sid/gateways."""
    query = context.query
    page = await context.services.trunks.list_gateways(
        context.account_sid, context.path["carrier_sid"], query.page, query.per_page
    )
    return Reply([_gateway(context, gateway) for gateway in page.items], page_meta(page))


async def get_gateway(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /trunk-portal/carriers/:carrier_sid/gateways/:gateway_sid."""
    path = context.path
    gateway = await context.services.trunks.get_gateway(
        context.account_sid, path["carrier_sid"], path["gateway_sid"]
    )
    return Reply(_gateway(context, gateway))


async def update_gateway(context: Context[UpdateGateway, NoQuery]) -> Reply:
    """Answer PATCH /trunk-portal/carriers/:carrier_sid/gateways/:gateway_sid."""
    values = context.body.model_dump(exclude_unset=True)
    if "port" in values and values["port"] is None:
        values["port"] = 0
    path = context.path
    gateway = await context.services.trunks.update_gateway(
        context.account_sid, path["carrier_sid"], path["gateway_sid"], values
    )
    return Reply(_gateway(context, gateway))


async def delete_gateway(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /trunk-portal/carriers/:carrier_sid/gateways/:gateway_sid."""
    path = context.path
    await context.services.trunks.delete_gateway(
        context.account_sid, path["carrier_sid"], path["gateway_sid"]
    )
    return Reply(None)


_CARRIERS = "/v1/trunk-portal/carriers"
_GATEWAYS = _CARRIERS + "/{carrier_sid}/gateways"
_READ: dict[str, Any] = {"tag": "carrier trunks", "scope": "trunks.read"}
_WRITE: dict[str, Any] = {"tag": "carrier trunks", "scope": "trunks.write"}

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_CARRIERS,
        handler=create_carrier,
        summary="Create a carrier",
        success=201,
        body=CreateCarrier,
        response=CarrierObject,
        errors=(Conflict,),
        **_WRITE,
    ),
    Endpoint(
        method="GET",
        path=_CARRIERS,
        handler=list_carriers,
        summary="List carriers",
        query=Paging,
        response=CarrierObject,
        paged=True,
        **_READ,
    ),
    Endpoint(
        method="GET",
        path=_CARRIERS + "/{carrier_sid}",
        handler=get_carrier,
        summary="Get a carrier",
        response=CarrierObject,
        **_READ,
    ),
    Endpoint(
        method="PATCH",
        path=_CARRIERS + "/{carrier_sid}",
        handler=update_carrier,
        summary="Update a carrier",
        description="Omitted fields keep their values. The next call uses the new policy.",
        body=UpdateCarrier,
        response=CarrierObject,
        **_WRITE,
    ),
    Endpoint(
        method="DELETE",
        path=_CARRIERS + "/{carrier_sid}",
        handler=delete_carrier,
        summary="Delete a carrier",
        description="Refused while calls use it or numbers are attached.",
        success=204,
        response=None,
        errors=(Conflict,),
        **_WRITE,
    ),
    Endpoint(
        method="POST",
        path=_GATEWAYS,
        handler=create_gateway,
        summary="Create a gateway",
        success=201,
        body=CreateGateway,
        response=GatewayObject,
        errors=(Conflict,),
        **_WRITE,
    ),
    Endpoint(
        method="GET",
        path=_GATEWAYS,
        handler=list_gateways,
        summary="List gateways",
        query=Paging,
        response=GatewayObject,
        paged=True,
        **_READ,
    ),
    Endpoint(
        method="GET",
        path=_GATEWAYS + "/{gateway_sid}",
        handler=get_gateway,
        summary="Get a gateway",
        response=GatewayObject,
        **_READ,
    ),
    Endpoint(
        method="PATCH",
        path=_GATEWAYS + "/{gateway_sid}",
        handler=update_gateway,
        summary="Update a gateway",
        description="Omitted fields keep their values.",
        body=UpdateGateway,
        response=GatewayObject,
        **_WRITE,
    ),
    Endpoint(
        method="DELETE",
        path=_GATEWAYS + "/{gateway_sid}",
        handler=delete_gateway,
        summary="Delete a gateway",
        success=204,
        response=None,
        errors=(Conflict,),
        **_WRITE,
    ),
)
