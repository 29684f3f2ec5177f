"""Contacts and lists of them, as the routes use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from callcontrol.messaging.contacts import ContactList
from callcontrol.messaging.models import Contact
from callcontrol.models import Page

__all__ = ["ContactLists", "Contacts"]


class Contacts(Protocol):
    """Contacts of accounts; see ``callcontrol.messaging.aio.contacts.ContactService``."""

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Contact:
        """Add a contact; `values` are attributes of `Contact`."""

    async def list(self, account_sid: str, search: str | None, page: int, per_page: int) -> Page[Contact]:
        """Contacts of the account, all or those matching a search."""

    async def get(self, account_sid: str, contact_id: int) -> Contact:
        """One contact."""

    async def find(self, account_sid: str, phone_number: str) -> Contact:
        """The contact of a number in E.164."""

    async def update(self, account_sid: str, contact_id: int, values: Mapping[str, Any]) -> Contact:
        """Change a contact; `values` are the changed attributes."""

    async def delete(self, account_sid: str, contact_id: int) -> None:
        """Remove a contact, from every list too."""


class ContactLists(Protocol):
    """Lists of contacts; see ``callcontrol.messaging.aio.contacts.ContactListService``."""

    async def create(self, account_sid: str, name: str, description: str | None) -> ContactList:
        """Make an empty list."""

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[ContactList]:
        """Lists of the account, newest first."""

    async def get(self, account_sid: str, list_id: int) -> ContactList:
        """One list."""

    async def contacts(self, account_sid: str, list_id: int, page: int, per_page: int) -> Page[Contact]:
        """The contacts of a list."""

    async def update(self, account_sid: str, list_id: int, values: Mapping[str, Any]) -> ContactList:
        """Change a list; `values` are the changed attributes."""

    async def delete(self, account_sid: str, list_id: int) -> None:
        """Remove a list; its contacts stay."""

    async def add(
        self, account_sid: str, list_id: int, contact_ids: Sequence[int]
    ) -> tuple[ContactList, int]:
        """Add contacts to a list; return it and the number of those that were not in it before."""

    async def remove(
        self, account_sid: str, list_id: int, contact_ids: Sequence[int]
    ) -> tuple[ContactList, int]:
        """Remove contacts from a list; return it and the number of those that were in it before."""
