# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.numbers`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import numbers as fields_of
from trunkline_client.generated.results import numbers
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_SEARCH_DIDS = Operation(
    "GET", "/v1/dids/available", queries=frozenset({"region", "number_type", "contains", "per_page"})
)
_PURCHASE_DID = Operation("POST", "/v1/dids/purchase-live", idempotent=True)
_LIST = Operation(
    "GET", "/v1/phone-numbers", queries=frozenset({"status", "number_type", "region", "per_page"})
)
_GET = Operation("GET", "/v1/phone-numbers/{id}")
_CHANGE = Operation("PATCH", "/v1/phone-numbers/{id}")
_RELEASE = Operation("DELETE", "/v1/phone-numbers/{id}")
_GET_WIRING = Operation("GET", "/v1/phone-numbers/{id}/telephony")
_REGISTER = Operation("POST", "/v1/phone-numbers/{id}/carrier")
_DEREGISTER = Operation("DELETE", "/v1/phone-numbers/{id}/carrier", queries=frozenset({"force"}))
_BIND = Operation("PUT", "/v1/phone-numbers/{id}/inbound")
_UNBIND = Operation("DELETE", "/v1/phone-numbers/{id}/inbound")


class NumbersResource(Resource):
    """Operations of `client.numbers`."""

    def search_dids(self, **fields: Unpack[fields_of.SearchDidsFields]) -> Pages[numbers.Listing]:
        """Search numbers that are for sale."""
        return self._transport.pages(_SEARCH_DIDS, (), fields, numbers.Listing)

    def purchase_did(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.PurchaseDidFields]
    ) -> numbers.Purchase:
        """Buy a number."""
        return self._transport.item(_PURCHASE_DID, (), fields, numbers.Purchase, idempotency_key)

    def list(self, **fields: Unpack[fields_of.ListNumbersFields]) -> Pages[numbers.PhoneNumber]:
        """List phone numbers."""
        return self._transport.pages(_LIST, (), fields, numbers.PhoneNumber)

    def get(self, identifier: str, /) -> numbers.PhoneNumber:
        """Get a phone number."""
        return self._transport.item(_GET, (identifier,), {}, numbers.PhoneNumber)

    def change(
        self, identifier: str, /, **fields: Unpack[fields_of.ChangeNumberFields]
    ) -> numbers.PhoneNumber:
        """Change the label of a phone number."""
        return self._transport.item(_CHANGE, (identifier,), fields, numbers.PhoneNumber)

    def release(self, identifier: str, /) -> None:
        """Release a phone number."""
        return self._transport.nothing(_RELEASE, (identifier,), {})

    def get_wiring(self, identifier: str, /) -> numbers.Wiring:
        """Get the wiring state of a number."""
        return self._transport.item(_GET_WIRING, (identifier,), {}, numbers.Wiring)

    def register(self, identifier: str, /) -> numbers.Wiring:
        """Register a number on the carrier."""
        return self._transport.item(_REGISTER, (identifier,), {}, numbers.Wiring)

    def deregister(
        self, identifier: str, /, **fields: Unpack[fields_of.DeregisterNumberFields]
    ) -> numbers.Deregistered:
        """Deregister a number from the carrier."""
        return self._transport.item(_DEREGISTER, (identifier,), fields, numbers.Deregistered)

    def bind(self, identifier: str, /, **fields: Unpack[fields_of.BindNumberFields]) -> numbers.Wiring:
        """Bind the inbound calls of a number."""
        return self._transport.item(_BIND, (identifier,), fields, numbers.Wiring)

    def unbind(self, identifier: str, /) -> numbers.Wiring:
        """Unbind the inbound calls of a number."""
        return self._transport.item(_UNBIND, (identifier,), {}, numbers.Wiring)


class AsyncNumbersResource(AsyncResource):
    """Operations of `client.numbers`."""

    def search_dids(self, **fields: Unpack[fields_of.SearchDidsFields]) -> AsyncPages[numbers.Listing]:
        """Search numbers that are for sale."""
        return self._transport.pages(_SEARCH_DIDS, (), fields, numbers.Listing)

    async def purchase_did(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.PurchaseDidFields]
    ) -> numbers.Purchase:
        """Buy a number."""
        return await self._transport.item(_PURCHASE_DID, (), fields, numbers.Purchase, idempotency_key)

    def list(self, **fields: Unpack[fields_of.ListNumbersFields]) -> AsyncPages[numbers.PhoneNumber]:
        """List phone numbers."""
        return self._transport.pages(_LIST, (), fields, numbers.PhoneNumber)

    async def get(self, identifier: str, /) -> numbers.PhoneNumber:
        """Get a phone number."""
        return await self._transport.item(_GET, (identifier,), {}, numbers.PhoneNumber)

    async def change(
        self, identifier: str, /, **fields: Unpack[fields_of.ChangeNumberFields]
    ) -> numbers.PhoneNumber:
        """Change the label of a phone number."""
        return await self._transport.item(_CHANGE, (identifier,), fields, numbers.PhoneNumber)

    async def release(self, identifier: str, /) -> None:
        """Release a phone number."""
        return await self._transport.nothing(_RELEASE, (identifier,), {})

    async def get_wiring(self, identifier: str, /) -> numbers.Wiring:
        """Get the wiring state of a number."""
        return await self._transport.item(_GET_WIRING, (identifier,), {}, numbers.Wiring)

    async def register(self, identifier: str, /) -> numbers.Wiring:
        """Register a number on the carrier."""
        return await self._transport.item(_REGISTER, (identifier,), {}, numbers.Wiring)

    async def deregister(
        self, identifier: str, /, **fields: Unpack[fields_of.DeregisterNumberFields]
    ) -> numbers.Deregistered:
        """Deregister a number from the carrier."""
        return await self._transport.item(_DEREGISTER, (identifier,), fields, numbers.Deregistered)

    async def bind(self, identifier: str, /, **fields: Unpack[fields_of.BindNumberFields]) -> numbers.Wiring:
        """Bind the inbound calls of a number."""
        return await self._transport.item(_BIND, (identifier,), fields, numbers.Wiring)

    async def unbind(self, identifier: str, /) -> numbers.Wiring:
        """Unbind the inbound calls of a number."""
        return await self._transport.item(_UNBIND, (identifier,), {}, numbers.Wiring)
