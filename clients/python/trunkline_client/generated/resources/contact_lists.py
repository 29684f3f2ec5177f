# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.contact_lists`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import contact_lists as fields_of
from trunkline_client.generated.results import contact_lists, shared
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_CREATE = Operation("POST", "/api/v1/contact-lists")
_LIST = Operation("GET", "/api/v1/contact-lists", queries=frozenset({"pageSize"}))
_GET = Operation("GET", "/api/v1/contact-lists/{id}")
_UPDATE = Operation("PATCH", "/api/v1/contact-lists/{id}")
_DELETE = Operation("DELETE", "/api/v1/contact-lists/{id}")
_LIST_CONTACTS = Operation("GET", "/api/v1/contact-lists/{id}/contacts", queries=frozenset({"pageSize"}))
_ADD_CONTACTS = Operation("POST", "/api/v1/contact-lists/{id}/contacts")
_REMOVE_CONTACTS = Operation("POST", "/api/v1/contact-lists/{id}/contacts/remove")


class ContactListsResource(Resource):
    """Operations of `client.contact_lists`."""

    def create(self, **fields: Unpack[fields_of.CreateContactListFields]) -> contact_lists.ContactList:
        """Create a contact list."""
        return self._transport.item(_CREATE, (), fields, contact_lists.ContactList)

    def list(self, **fields: Unpack[fields_of.ListContactListsFields]) -> Pages[contact_lists.ContactList]:
        """List contact lists, newest first."""
        return self._transport.pages(_LIST, (), fields, contact_lists.ContactList)

    def get(self, identifier: int, /) -> contact_lists.ContactList:
        """Get a contact list."""
        return self._transport.item(_GET, (identifier,), {}, contact_lists.ContactList)

    def update(
        self, identifier: int, /, **fields: Unpack[fields_of.UpdateContactListFields]
    ) -> contact_lists.ContactList:
        """Rename or describe a contact list."""
        return self._transport.item(_UPDATE, (identifier,), fields, contact_lists.ContactList)

    def delete(self, identifier: int, /) -> shared.Deleted:
        """Delete a contact list."""
        return self._transport.item(_DELETE, (identifier,), {}, shared.Deleted)

    def list_contacts(
        self, identifier: int, /, **fields: Unpack[fields_of.ListContactsOfListFields]
    ) -> Pages[shared.Contact]:
        """List the contacts of a list."""
        return self._transport.pages(_LIST_CONTACTS, (identifier,), fields, shared.Contact)

    def add_contacts(
        self, identifier: int, /, **fields: Unpack[fields_of.AddContactsFields]
    ) -> contact_lists.ContactsAdded:
        """Add contacts to a list."""
        return self._transport.item(_ADD_CONTACTS, (identifier,), fields, contact_lists.ContactsAdded)

    def remove_contacts(
        self, identifier: int, /, **fields: Unpack[fields_of.RemoveContactsFields]
    ) -> contact_lists.ContactsRemoved:
        """Remove contacts from a list."""
        return self._transport.item(_REMOVE_CONTACTS, (identifier,), fields, contact_lists.ContactsRemoved)


class AsyncContactListsResource(AsyncResource):
    """Operations of `client.contact_lists`."""

    async def create(self, **fields: Unpack[fields_of.CreateContactListFields]) -> contact_lists.ContactList:
        """Create a contact list."""
        return await self._transport.item(_CREATE, (), fields, contact_lists.ContactList)

    def list(
        self, **fields: Unpack[fields_of.ListContactListsFields]
    ) -> AsyncPages[contact_lists.ContactList]:
        """List contact lists, newest first."""
        return self._transport.pages(_LIST, (), fields, contact_lists.ContactList)

    async def get(self, identifier: int, /) -> contact_lists.ContactList:
        """Get a contact list."""
        return await self._transport.item(_GET, (identifier,), {}, contact_lists.ContactList)

    async def update(
        self, identifier: int, /, **fields: Unpack[fields_of.UpdateContactListFields]
    ) -> contact_lists.ContactList:
        """Rename or describe a contact list."""
        return await self._transport.item(_UPDATE, (identifier,), fields, contact_lists.ContactList)

    async def delete(self, identifier: int, /) -> shared.Deleted:
        """Delete a contact list."""
        return await self._transport.item(_DELETE, (identifier,), {}, shared.Deleted)

    def list_contacts(
        self, identifier: int, /, **fields: Unpack[fields_of.ListContactsOfListFields]
    ) -> AsyncPages[shared.Contact]:
        """List the contacts of a list."""
        return self._transport.pages(_LIST_CONTACTS, (identifier,), fields, shared.Contact)

    async def add_contacts(
        self, identifier: int, /, **fields: Unpack[fields_of.AddContactsFields]
    ) -> contact_lists.ContactsAdded:
        """Add contacts to a list."""
        return await self._transport.item(_ADD_CONTACTS, (identifier,), fields, contact_lists.ContactsAdded)

    async def remove_contacts(
        self, identifier: int, /, **fields: Unpack[fields_of.RemoveContactsFields]
    ) -> contact_lists.ContactsRemoved:
        """Remove contacts from a list."""
        return await self._transport.item(
            _REMOVE_CONTACTS, (identifier,), fields, contact_lists.ContactsRemoved
        )
