# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.contacts`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import contacts as fields_of
from trunkline_client.generated.results import shared
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_CREATE = Operation("POST", "/api/v1/contacts")
_LIST = Operation("GET", "/api/v1/contacts", queries=frozenset({"pageSize", "search"}))
_GET = Operation("GET", "/api/v1/contacts/{id}")
_UPDATE = Operation("PATCH", "/api/v1/contacts/{id}")
_DELETE = Operation("DELETE", "/api/v1/contacts/{id}")


class ContactsResource(Resource):
    """Operations of `client.contacts`."""

    def create(self, **fields: Unpack[fields_of.CreateContactFields]) -> shared.Contact:
        """Create a contact."""
        return self._transport.item(_CREATE, (), fields, shared.Contact)

    def list(self, **fields: Unpack[fields_of.ListContactsFields]) -> Pages[shared.Contact]:
        """List contacts, or search them."""
        return self._transport.pages(_LIST, (), fields, shared.Contact)

    def get(self, identifier: int, /) -> shared.Contact:
        """Get a contact."""
        return self._transport.item(_GET, (identifier,), {}, shared.Contact)

    def update(self, identifier: int, /, **fields: Unpack[fields_of.UpdateContactFields]) -> shared.Contact:
        """Update a contact."""
        return self._transport.item(_UPDATE, (identifier,), fields, shared.Contact)

    def delete(self, identifier: int, /) -> shared.Deleted:
        """Delete a contact."""
        return self._transport.item(_DELETE, (identifier,), {}, shared.Deleted)


class AsyncContactsResource(AsyncResource):
    """Operations of `client.contacts`."""

    async def create(self, **fields: Unpack[fields_of.CreateContactFields]) -> shared.Contact:
        """Create a contact."""
        return await self._transport.item(_CREATE, (), fields, shared.Contact)

    def list(self, **fields: Unpack[fields_of.ListContactsFields]) -> AsyncPages[shared.Contact]:
        """List contacts, or search them."""
        return self._transport.pages(_LIST, (), fields, shared.Contact)

    async def get(self, identifier: int, /) -> shared.Contact:
        """Get a contact."""
        return await self._transport.item(_GET, (identifier,), {}, shared.Contact)

    async def update(
        self, identifier: int, /, **fields: Unpack[fields_of.UpdateContactFields]
    ) -> shared.Contact:
        """Update a contact."""
        return await self._transport.item(_UPDATE, (identifier,), fields, shared.Contact)

    async def delete(self, identifier: int, /) -> shared.Deleted:
        """Delete a contact."""
        return await self._transport.item(_DELETE, (identifier,), {}, shared.Deleted)
