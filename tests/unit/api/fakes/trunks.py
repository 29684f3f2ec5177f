"""What the trunk portal keeps, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from callcontrol.applications.application import Application, changed_application, new_application
from callcontrol.errors import Forbidden, NotFound
from callcontrol.models import Carrier, Gateway, Page, PhoneNumber
from tests.unit.api.fakes.facts import (
    ACCOUNT,
    APP_SID,
    CARRIER_SID,
    GATEWAY_SID,
    MOMENT,
    NUMBER_ID,
    OTHER_APP_SID,
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


class FakeTrunkNumbers:
    def __init__(self) -> None:
        self.number = PhoneNumber(
            NUMBER_ID, ACCOUNT, "+918047000002", MOMENT, MOMENT, carrier_sid=CARRIER_SID, registered=True
        )
        self.values: list[Mapping[str, Any]] = []

    async def register(self, account_sid: str, number: str, carrier_sid: str, **values: Any) -> PhoneNumber:
        self.values.append({"number": number, "carrier_sid": carrier_sid, **values})
        return replace(self.number, number=number, carrier_sid=carrier_sid, **values)

    async def list(
        self, account_sid: str, filters: Mapping[str, str], page: int, per_page: int
    ) -> Page[PhoneNumber]:
        self.values.append(filters)
        return Page([self.number], 1, page, per_page)

    async def update(self, account_sid: str, number_sid: str, values: Mapping[str, Any]) -> PhoneNumber:
        self.values.append(values)
        await self.remove(account_sid, number_sid)
        return replace(self.number, **values)

    async def remove(self, account_sid: str, number_sid: str) -> None:
        if number_sid != NUMBER_ID:
            raise NotFound("There is no such number.")


class FakeApplications:
    def __init__(self) -> None:
        self.application = new_application(
            APP_SID,
            ACCOUNT,
            {"name": "Desk", "target": "media_stream", "stream_url": "wss://a.example/"},
            MOMENT,
        )
        self.values: list[Mapping[str, Any]] = []

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Application:
        self.values.append(values)
        return new_application(APP_SID, account_sid, values, MOMENT)

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[Application]:
        return Page([self.application], 1, page, per_page)

    async def get(self, account_sid: str, app_sid: str) -> Application:
        if app_sid == OTHER_APP_SID:
            raise Forbidden("The application belongs to another account.")
        if app_sid != APP_SID:
            raise NotFound("There is no such application.")
        return self.application

    async def update(self, account_sid: str, app_sid: str, values: Mapping[str, Any]) -> Application:
        self.values.append(values)
        return changed_application(await self.get(account_sid, app_sid), values, MOMENT)

    async def delete(self, account_sid: str, app_sid: str) -> None:
        await self.get(account_sid, app_sid)
