"""Numbers, trunks and applications, as the routes use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from callcontrol.applications.application import Application
from callcontrol.models import Binding, Carrier, Gateway, Page, PhoneNumber, Wiring
from callcontrol.numbers.inventory import Listing, ListingFilter
from callcontrol.numbers.orders import Purchase, PurchaseRequest

__all__ = ["Applications", "Market", "Numbers", "TrunkNumbers", "Trunks"]


class Numbers(Protocol):
    """Numbers and their wiring; see ``callcontrol.numbers.aio.service.NumberService``."""

    async def list(
        self,
        account_sid: str,
        page: int,
        per_page: int,
        *,
        status: str | None = None,
        number_type: str | None = None,
        region: str | None = None,
    ) -> Page[PhoneNumber]:
        """Numbers of the account."""

    async def wiring(self, account_sid: str, phone_number_id: str) -> Wiring:
        """The wiring state."""

    async def register(self, account_sid: str, phone_number_id: str) -> Wiring:
        """Allow the number as caller-ID."""

    async def deregister(self, account_sid: str, phone_number_id: str, *, force: bool) -> Wiring:
        """Disallow the number as caller-ID."""

    async def bind(self, account_sid: str, phone_number_id: str, binding: Binding, *, force: bool) -> Wiring:
        """Bind the number's inbound calls to a target."""

    async def unbind(self, account_sid: str, phone_number_id: str) -> Wiring:
        """Remove the binding of the number's inbound calls."""

    async def show(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        """One number."""

    async def rename(self, account_sid: str, phone_number_id: str, friendly_name: str | None) -> PhoneNumber:
        """Change the label of a number."""

    async def release(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        """Release a number of the account."""


class Market(Protocol):
    """Numbers for sale; see ``callcontrol.numbers.aio.marketplace.NumberMarket``."""

    async def search(self, wanted: ListingFilter, page: int, per_page: int) -> Page[Listing]:
        """Search the numbers for sale."""

    async def purchase(self, account_sid: str, request: PurchaseRequest) -> Purchase:
        """Buy a number with its first months."""


class Trunks(Protocol):
    """Carriers and gateways of accounts; see ``callcontrol.trunks.aio.service.TrunkService``."""

    async def create_carrier(self, account_sid: str, values: Mapping[str, Any]) -> Carrier:
        """Add a carrier; `values` are attributes of `Carrier`."""

    async def list_carriers(self, account_sid: str, page: int, per_page: int) -> Page[Carrier]:
        """Carriers of the account."""

    async def get_carrier(self, account_sid: str, carrier_sid: str) -> Carrier:
        """One carrier."""

    async def update_carrier(self, account_sid: str, carrier_sid: str, values: Mapping[str, Any]) -> Carrier:
        """Change a carrier; `values` are the changed attributes."""

    async def delete_carrier(self, account_sid: str, carrier_sid: str) -> None:
        """Remove a carrier and its gateways."""

    async def create_gateway(self, account_sid: str, carrier_sid: str, values: Mapping[str, Any]) -> Gateway:
        """Add a gateway; `values` are attributes of `Gateway`."""

    async def list_gateways(
        self, account_sid: str, carrier_sid: str, page: int, per_page: int
    ) -> Page[Gateway]:
        """Gateways of a carrier."""

    async def get_gateway(self, account_sid: str, carrier_sid: str, gateway_sid: str) -> Gateway:
        """One gateway of a carrier."""

    async def update_gateway(
        self, account_sid: str, carrier_sid: str, gateway_sid: str, values: Mapping[str, Any]
    ) -> Gateway:
        """Change a gateway; `values` are the changed attributes."""

    async def delete_gateway(self, account_sid: str, carrier_sid: str, gateway_sid: str) -> None:
        """Remove a gateway."""


class TrunkNumbers(Protocol):
    """Numbers on accounts' own carriers; see ``callcontrol.trunks.aio.numbers.TrunkNumberService``."""

    async def register(
        self,
        account_sid: str,
        number: str,
        carrier_sid: str,
        *,
        app_sid: str | None = None,
        friendly_name: str | None = None,
    ) -> PhoneNumber:
        """Register a number on a carrier."""

    async def list(
        self, account_sid: str, filters: Mapping[str, str], page: int, per_page: int
    ) -> Page[PhoneNumber]:
        """Numbers of the account on its own carriers; `filters` are values of its attributes."""

    async def update(self, account_sid: str, number_sid: str, values: Mapping[str, Any]) -> PhoneNumber:
        """Change a number; `values` are the changed attributes."""

    async def remove(self, account_sid: str, number_sid: str) -> None:
        """Remove a number."""


class Applications(Protocol):
    """Named bindings of calls; see ``callcontrol.applications.aio.ApplicationService``."""

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Application:
        """Add an application; `values` are its attributes and those of its `Binding`."""

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[Application]:
        """Applications of the account."""

    async def get(self, account_sid: str, app_sid: str) -> Application:
        """One application."""

    async def update(self, account_sid: str, app_sid: str, values: Mapping[str, Any]) -> Application:
        """Change an application; `values` are the changed attributes."""

    async def delete(self, account_sid: str, app_sid: str) -> None:
        """Remove an application."""
