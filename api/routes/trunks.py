"""An account's own carriers and gateways (telephony specification, carrier trunks)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import page_meta
from api.schemas.trunks import (
    CarrierObject,
    CreateCarrier,
    CreateGateway,
    GatewayObject,
    Paging,
    UpdateCarrier,
    UpdateGateway,
    carrier_json,
    gateway_json,
)
from callcontrol.errors import Conflict
from callcontrol.models import Carrier, Gateway

__all__ = ["routes"]

_CARRIERS = "/v1/trunk-portal/carriers"
_GATEWAYS = _CARRIERS + "/{carrier_sid}/gateways"

routes = Routes("trunks.read", "trunks.write", tag="carrier trunks")


@routes.post(_CARRIERS, response=CarrierObject, success=201, errors=(Conflict,))
async def create_carrier(context: Context[CreateCarrier, NoQuery]) -> Reply:
    """Create a carrier."""
    values = context.body.model_dump()
    values["codecs"] = tuple(values["codecs"])
    carrier = await context.services.trunks.create_carrier(context.account_sid, values)
    return Reply(_carrier(context, carrier))


@routes.get(_CARRIERS, response=CarrierObject, paged=True)
async def list_carriers(context: Context[NoBody, Paging]) -> Reply:
    """List carriers."""
    query = context.query
    page = await context.services.trunks.list_carriers(context.account_sid, query.page, query.per_page)
    return Reply([_carrier(context, carrier) for carrier in page.items], page_meta(page))


@routes.get(_CARRIERS + "/{carrier_sid}", response=CarrierObject)
async def get_carrier(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a carrier."""
    carrier = await context.services.trunks.get_carrier(context.account_sid, context.path["carrier_sid"])
    return Reply(_carrier(context, carrier))


@routes.patch(_CARRIERS + "/{carrier_sid}", response=CarrierObject)
async def update_carrier(context: Context[UpdateCarrier, NoQuery]) -> Reply:
    """
    Update a carrier.

    Omitted fields keep their values. The next call uses the new policy.
    """
    carrier = await context.services.trunks.update_carrier(
        context.account_sid, context.path["carrier_sid"], context.body.model_dump(exclude_unset=True)
    )
    return Reply(_carrier(context, carrier))


@routes.delete(_CARRIERS + "/{carrier_sid}", errors=(Conflict,))
async def delete_carrier(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete a carrier.

    Refused while calls use it or numbers are attached.
    """
    await context.services.trunks.delete_carrier(context.account_sid, context.path["carrier_sid"])
    return Reply(None)


@routes.post(_GATEWAYS, response=GatewayObject, success=201, errors=(Conflict,))
async def create_gateway(context: Context[CreateGateway, NoQuery]) -> Reply:
    """
    Create a gateway.

    409 if the carrier has one with this host, port and protocol: details.gateway_sid names it.
    """
    values = context.body.model_dump()
    if "port" not in context.body.model_fields_set:
        del values["port"]  # its default depends on the protocol
    elif values["port"] is None:
        values["port"] = 0
    gateway = await context.services.trunks.create_gateway(
        context.account_sid, context.path["carrier_sid"], values
    )
    return Reply(_gateway(context, gateway))


@routes.get(_GATEWAYS, response=GatewayObject, paged=True)
async def list_gateways(context: Context[NoBody, Paging]) -> Reply:
    """List gateways."""
    query = context.query
    page = await context.services.trunks.list_gateways(
        context.account_sid, context.path["carrier_sid"], query.page, query.per_page
    )
    return Reply([_gateway(context, gateway) for gateway in page.items], page_meta(page))


@routes.get(_GATEWAYS + "/{gateway_sid}", response=GatewayObject)
async def get_gateway(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a gateway."""
    path = context.path
    gateway = await context.services.trunks.get_gateway(
        context.account_sid, path["carrier_sid"], path["gateway_sid"]
    )
    return Reply(_gateway(context, gateway))


@routes.patch(_GATEWAYS + "/{gateway_sid}", response=GatewayObject, errors=(Conflict,))
async def update_gateway(context: Context[UpdateGateway, NoQuery]) -> Reply:
    """
    Update a gateway.

    Omitted fields keep their values. 409 if the carrier has another gateway with the new address.
    """
    values = context.body.model_dump(exclude_unset=True)
    if "port" in values and values["port"] is None:
        values["port"] = 0
    path = context.path
    gateway = await context.services.trunks.update_gateway(
        context.account_sid, path["carrier_sid"], path["gateway_sid"], values
    )
    return Reply(_gateway(context, gateway))


@routes.delete(_GATEWAYS + "/{gateway_sid}", errors=(Conflict,))
async def delete_gateway(context: Context[NoBody, NoQuery]) -> Reply:
    """Delete a gateway."""
    path = context.path
    await context.services.trunks.delete_gateway(
        context.account_sid, path["carrier_sid"], path["gateway_sid"]
    )
    return Reply(None)


def _carrier(context: Context[Any, Any], carrier: Carrier) -> dict[str, Any]:
    return carrier_json(carrier, context.services.calls.registrations(carrier.carrier_sid))


def _gateway(context: Context[Any, Any], gateway: Gateway) -> dict[str, Any]:
    return gateway_json(gateway, context.services.calls.gateways.of(gateway.gateway_sid))
