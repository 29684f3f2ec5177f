"""Numbers and the market they are bought on, in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from callcontrol.errors import DomainError, NotFound
from callcontrol.models import Binding, NumberConfiguration, Page, PhoneNumber
from callcontrol.numbers.inventory import Listing, ListingFilter
from callcontrol.numbers.orders import Purchase, PurchaseRequest
from tests.support.api_facts import ACCOUNT, MOMENT, NUMBER_ID


class FakeNumbers:
    def __init__(self) -> None:
        self.number = PhoneNumber(
            NUMBER_ID, ACCOUNT, "+918047000001", MOMENT, MOMENT, friendly_name="Front desk"
        )
        self.failure: DomainError | None = None
        self.forced: list[bool] = []
        self.listed: list[dict[str, Any]] = []

    async def list(self, account_sid: str, page: int, per_page: int, **filters: Any) -> Page[PhoneNumber]:
        self.listed.append(filters)
        return Page([self.number], 1, page, per_page)

    async def configuration(self, account_sid: str, phone_number_id: str) -> NumberConfiguration:
        if self.failure is not None:
            raise self.failure
        if phone_number_id != NUMBER_ID:
            raise NotFound("There is no such number on the account.")
        return NumberConfiguration.of(self.number)

    async def register(self, account_sid: str, phone_number_id: str) -> NumberConfiguration:
        self.number = replace(self.number, registered=True)
        return await self.configuration(account_sid, phone_number_id)

    async def deregister(self, account_sid: str, phone_number_id: str, *, force: bool) -> NumberConfiguration:
        self.forced.append(force)
        self.number = replace(self.number, registered=False)
        return await self.configuration(account_sid, phone_number_id)

    async def bind(
        self, account_sid: str, phone_number_id: str, binding: Binding, *, force: bool
    ) -> NumberConfiguration:
        self.forced.append(force)
        self.number = replace(self.number, registered=True, binding=binding)
        return await self.configuration(account_sid, phone_number_id)

    async def unbind(self, account_sid: str, phone_number_id: str) -> NumberConfiguration:
        self.number = replace(self.number, binding=None)
        return await self.configuration(account_sid, phone_number_id)

    async def show(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        await self.configuration(account_sid, phone_number_id)
        return self.number

    async def rename(self, account_sid: str, phone_number_id: str, friendly_name: str | None) -> PhoneNumber:
        self.number = replace(await self.show(account_sid, phone_number_id), friendly_name=friendly_name)
        return self.number

    async def release(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        return await self.show(account_sid, phone_number_id)


class FakeMarket:
    def __init__(self) -> None:
        self.listing = Listing("did_1", "+911110000100", "Delhi", "local", 24_950, 50_000)
        self.failure: DomainError | None = None
        self.searches: list[ListingFilter] = []
        self.requests: list[PurchaseRequest] = []

    async def search(self, wanted: ListingFilter, page: int, per_page: int) -> Page[Listing]:
        self.searches.append(wanted)
        return Page([self.listing], 1, page, per_page)

    async def purchase(self, account_sid: str, request: PurchaseRequest) -> Purchase:
        if self.failure is not None:
            raise self.failure
        self.requests.append(request)
        total_paise = self.listing.total_paise(request.months)
        return Purchase(NUMBER_ID, self.listing.number, total_paise, 10_050, MOMENT)
