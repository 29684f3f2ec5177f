"""Rows of the trunk portal, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from callcontrol.errors import Forbidden, NotFound
from callcontrol.models import Carrier, Gateway, Page
from tests.support.api_facts import (
    ACCOUNT,
    CARRIER_SID,
    GATEWAY_SID,
    MOMENT,
    OTHER_CARRIER_SID,
)


class FakeTrunks:
    def __init__(self) -> None:
        self.carrier = Carrier(CARRIER_SID, ACCOUNT, "Own trunk", MOMENT, MOMENT, register_password="s3cret")
        self.values: list[Mapping[str, Any]] = []

    async def create_carrier(self, account_sid: str, values: Mapping[str, Any]) -> Carrier:
        self.values.append(values)
        return replace(self.carrier, **values)

    async def list_carriers(self, account_sid: str, page: int, per_page: int) -> Page[Carrier]:
        return Page([self.carrier], 1, page, per_page)

    async def get_carrier(self, account_sid: str, carrier_sid: str) -> Carrier:
        if carrier_sid == OTHER_CARRIER_SID:
            raise Forbidden("This carrier belongs to another account.")
        if carrier_sid != CARRIER_SID:
            raise NotFound("There is no such carrier on the account.")
        return self.carrier

    async def update_carrier(self, account_sid: str, carrier_sid: str, values: Mapping[str, Any]) -> Carrier:
        self.values.append(values)
        return replace(await self.get_carrier(account_sid, carrier_sid), **values)

    async def delete_carrier(self, account_sid: str, carrier_sid: str) -> None:
        await self.get_carrier(account_sid, carrier_sid)

    async def create_gateway(self, account_sid: str, carrier_sid: str, values: Mapping[str, Any]) -> Gateway:
        await self.get_carrier(account_sid, carrier_sid)
        self.values.append(values)
        return Gateway(
            gateway_sid=GATEWAY_SID, carrier_sid=carrier_sid, created_at=MOMENT, updated_at=MOMENT, **values
        )

    async def list_gateways(
        self, account_sid: str, carrier_sid: str, page: int, per_page: int
    ) -> Page[Gateway]:
        await self.get_carrier(account_sid, carrier_sid)
        return Page([Gateway(GATEWAY_SID, carrier_sid, "192.0.2.1", MOMENT, MOMENT)], 1, page, per_page)

    async def get_gateway(self, account_sid: str, carrier_sid: str, gateway_sid: str) -> Gateway:
        await self.get_carrier(account_sid, carrier_sid)
        if gateway_sid != GATEWAY_SID:
            raise NotFound("There is no such gateway on the carrier.")
        return Gateway(GATEWAY_SID, carrier_sid, "192.0.2.1", MOMENT, MOMENT)

    async def update_gateway(
        self, account_sid: str, carrier_sid: str, gateway_sid: str, values: Mapping[str, Any]
    ) -> Gateway:
        self.values.append(values)
        return replace(await self.get_gateway(account_sid, carrier_sid, gateway_sid), **values)

    async def delete_gateway(self, account_sid: str, carrier_sid: str, gateway_sid: str) -> None:
        await self.get_carrier(account_sid, carrier_sid)
        if gateway_sid != GATEWAY_SID:
            raise NotFound("There is no such gateway on the carrier.")
