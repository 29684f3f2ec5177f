# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.trunks`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import trunks as fields_of
from trunkline_client.generated.results import trunks
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_CREATE_CARRIER = Operation("POST", "/v1/trunk-portal/carriers")
_LIST_CARRIERS = Operation("GET", "/v1/trunk-portal/carriers", queries=frozenset({"per_page"}))
_GET_CARRIER = Operation("GET", "/v1/trunk-portal/carriers/{carrier_sid}")
_UPDATE_CARRIER = Operation("PATCH", "/v1/trunk-portal/carriers/{carrier_sid}")
_DELETE_CARRIER = Operation("DELETE", "/v1/trunk-portal/carriers/{carrier_sid}")
_CREATE_GATEWAY = Operation("POST", "/v1/trunk-portal/carriers/{carrier_sid}/gateways")
_LIST_GATEWAYS = Operation(
    "GET", "/v1/trunk-portal/carriers/{carrier_sid}/gateways", queries=frozenset({"per_page"})
)
_GET_GATEWAY = Operation("GET", "/v1/trunk-portal/carriers/{carrier_sid}/gateways/{gateway_sid}")
_UPDATE_GATEWAY = Operation("PATCH", "/v1/trunk-portal/carriers/{carrier_sid}/gateways/{gateway_sid}")
_DELETE_GATEWAY = Operation("DELETE", "/v1/trunk-portal/carriers/{carrier_sid}/gateways/{gateway_sid}")
_REGISTER_NUMBER = Operation("POST", "/v1/trunk-portal/numbers")
_LIST_NUMBERS = Operation(
    "GET", "/v1/trunk-portal/numbers", queries=frozenset({"carrier_sid", "app_sid", "per_page"})
)
_UPDATE_NUMBER = Operation("PATCH", "/v1/trunk-portal/numbers/{number_sid}")
_REMOVE_NUMBER = Operation("DELETE", "/v1/trunk-portal/numbers/{number_sid}")
_LIST_CALL_LOGS = Operation(
    "GET", "/v1/trunk-portal/call-logs", queries=frozenset({"days", "start", "end", "start_date", "end_date", "direction", "answered", "carrier_sid", "filter", "per_page"})
)


class TrunksResource(Resource):
    """Operations of `client.trunks`."""

    def create_carrier(self, **fields: Unpack[fields_of.CreateCarrierFields]) -> trunks.Carrier:
        """Create a carrier."""
        return self._transport.item(_CREATE_CARRIER, (), fields, trunks.Carrier)

    def list_carriers(self, **fields: Unpack[fields_of.ListCarriersFields]) -> Pages[trunks.Carrier]:
        """List carriers."""
        return self._transport.pages(_LIST_CARRIERS, (), fields, trunks.Carrier)

    def get_carrier(self, carrier_sid: str, /) -> trunks.Carrier:
        """Get a carrier."""
        return self._transport.item(_GET_CARRIER, (carrier_sid,), {}, trunks.Carrier)

    def update_carrier(
        self, carrier_sid: str, /, **fields: Unpack[fields_of.UpdateCarrierFields]
    ) -> trunks.Carrier:
        """Update a carrier."""
        return self._transport.item(_UPDATE_CARRIER, (carrier_sid,), fields, trunks.Carrier)

    def delete_carrier(self, carrier_sid: str, /) -> None:
        """Delete a carrier."""
        return self._transport.nothing(_DELETE_CARRIER, (carrier_sid,), {})

    def create_gateway(
        self, carrier_sid: str, /, **fields: Unpack[fields_of.CreateGatewayFields]
    ) -> trunks.Gateway:
        """Create a gateway."""
        return self._transport.item(_CREATE_GATEWAY, (carrier_sid,), fields, trunks.Gateway)

    def list_gateways(
        self, carrier_sid: str, /, **fields: Unpack[fields_of.ListGatewaysFields]
    ) -> Pages[trunks.Gateway]:
        """List gateways."""
        return self._transport.pages(_LIST_GATEWAYS, (carrier_sid,), fields, trunks.Gateway)

    def get_gateway(self, carrier_sid: str, gateway_sid: str, /) -> trunks.Gateway:
        """Get a gateway."""
        return self._transport.item(_GET_GATEWAY, (carrier_sid, gateway_sid,), {}, trunks.Gateway)

    def update_gateway(
        self, carrier_sid: str, gateway_sid: str, /, **fields: Unpack[fields_of.UpdateGatewayFields]
    ) -> trunks.Gateway:
        """Update a gateway."""
        return self._transport.item(_UPDATE_GATEWAY, (carrier_sid, gateway_sid,), fields, trunks.Gateway)

    def delete_gateway(self, carrier_sid: str, gateway_sid: str, /) -> None:
        """Delete a gateway."""
        return self._transport.nothing(_DELETE_GATEWAY, (carrier_sid, gateway_sid,), {})

    def register_number(self, **fields: Unpack[fields_of.RegisterTrunkNumberFields]) -> trunks.TrunkNumber:
        """Register a number on an own carrier."""
        return self._transport.item(_REGISTER_NUMBER, (), fields, trunks.TrunkNumber)

    def list_numbers(self, **fields: Unpack[fields_of.ListTrunkNumbersFields]) -> Pages[trunks.TrunkNumber]:
        """List the numbers on own carriers, newest first."""
        return self._transport.pages(_LIST_NUMBERS, (), fields, trunks.TrunkNumber)

    def update_number(
        self, number_sid: str, /, **fields: Unpack[fields_of.UpdateTrunkNumberFields]
    ) -> trunks.TrunkNumber:
        """Update a number on an own carrier."""
        return self._transport.item(_UPDATE_NUMBER, (number_sid,), fields, trunks.TrunkNumber)

    def remove_number(self, number_sid: str, /) -> None:
        """Remove a number from an own carrier."""
        return self._transport.nothing(_REMOVE_NUMBER, (number_sid,), {})

    def list_call_logs(self, **fields: Unpack[fields_of.ListCallLogsFields]) -> Pages[trunks.CallLog]:
        """List call logs, newest first."""
        return self._transport.pages(_LIST_CALL_LOGS, (), fields, trunks.CallLog)


class AsyncTrunksResource(AsyncResource):
    """Operations of `client.trunks`."""

    async def create_carrier(self, **fields: Unpack[fields_of.CreateCarrierFields]) -> trunks.Carrier:
        """Create a carrier."""
        return await self._transport.item(_CREATE_CARRIER, (), fields, trunks.Carrier)

    def list_carriers(self, **fields: Unpack[fields_of.ListCarriersFields]) -> AsyncPages[trunks.Carrier]:
        """List carriers."""
        return self._transport.pages(_LIST_CARRIERS, (), fields, trunks.Carrier)

    async def get_carrier(self, carrier_sid: str, /) -> trunks.Carrier:
        """Get a carrier."""
        return await self._transport.item(_GET_CARRIER, (carrier_sid,), {}, trunks.Carrier)

    async def update_carrier(
        self, carrier_sid: str, /, **fields: Unpack[fields_of.UpdateCarrierFields]
    ) -> trunks.Carrier:
        """Update a carrier."""
        return await self._transport.item(_UPDATE_CARRIER, (carrier_sid,), fields, trunks.Carrier)

    async def delete_carrier(self, carrier_sid: str, /) -> None:
        """Delete a carrier."""
        return await self._transport.nothing(_DELETE_CARRIER, (carrier_sid,), {})

    async def create_gateway(
        self, carrier_sid: str, /, **fields: Unpack[fields_of.CreateGatewayFields]
    ) -> trunks.Gateway:
        """Create a gateway."""
        return await self._transport.item(_CREATE_GATEWAY, (carrier_sid,), fields, trunks.Gateway)

    def list_gateways(
        self, carrier_sid: str, /, **fields: Unpack[fields_of.ListGatewaysFields]
    ) -> AsyncPages[trunks.Gateway]:
        """List gateways."""
        return self._transport.pages(_LIST_GATEWAYS, (carrier_sid,), fields, trunks.Gateway)

    async def get_gateway(self, carrier_sid: str, gateway_sid: str, /) -> trunks.Gateway:
        """Get a gateway."""
        return await self._transport.item(_GET_GATEWAY, (carrier_sid, gateway_sid,), {}, trunks.Gateway)

    async def update_gateway(
        self, carrier_sid: str, gateway_sid: str, /, **fields: Unpack[fields_of.UpdateGatewayFields]
    ) -> trunks.Gateway:
        """Update a gateway."""
        return await self._transport.item(
            _UPDATE_GATEWAY, (carrier_sid, gateway_sid,), fields, trunks.Gateway
        )

    async def delete_gateway(self, carrier_sid: str, gateway_sid: str, /) -> None:
        """Delete a gateway."""
        return await self._transport.nothing(_DELETE_GATEWAY, (carrier_sid, gateway_sid,), {})

    async def register_number(
        self, **fields: Unpack[fields_of.RegisterTrunkNumberFields]
    ) -> trunks.TrunkNumber:
        """Register a number on an own carrier."""
        return await self._transport.item(_REGISTER_NUMBER, (), fields, trunks.TrunkNumber)

    def list_numbers(
        self, **fields: Unpack[fields_of.ListTrunkNumbersFields]
    ) -> AsyncPages[trunks.TrunkNumber]:
        """List the numbers on own carriers, newest first."""
        return self._transport.pages(_LIST_NUMBERS, (), fields, trunks.TrunkNumber)

    async def update_number(
        self, number_sid: str, /, **fields: Unpack[fields_of.UpdateTrunkNumberFields]
    ) -> trunks.TrunkNumber:
        """Update a number on an own carrier."""
        return await self._transport.item(_UPDATE_NUMBER, (number_sid,), fields, trunks.TrunkNumber)

    async def remove_number(self, number_sid: str, /) -> None:
        """Remove a number from an own carrier."""
        return await self._transport.nothing(_REMOVE_NUMBER, (number_sid,), {})

    def list_call_logs(self, **fields: Unpack[fields_of.ListCallLogsFields]) -> AsyncPages[trunks.CallLog]:
        """List call logs, newest first."""
        return self._transport.pages(_LIST_CALL_LOGS, (), fields, trunks.CallLog)
