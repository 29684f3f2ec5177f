"""Contacts and lists of them, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from callcontrol.errors import NotFound
from callcontrol.messaging.contacts import ContactList
from callcontrol.messaging.models import Contact
from callcontrol.models import Page
from tests.unit.api.fakes.facts import ACCOUNT, MOMENT

CONTACT = Contact(7, ACCOUNT, "+919876543210", MOMENT, MOMENT, first_name="Asha", custom_fields={"n": 1})
CONTACT_LIST = ContactList(3, ACCOUNT, "Diwali", None, MOMENT, MOMENT, contact_count=2)


class FakeContacts:
    """One contact."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Contact:
        self.asked.append(values)
        return Contact(8, account_sid, created_at=MOMENT, updated_at=MOMENT, **values)

    async def list(self, account_sid: str, search: str | None, page: int, per_page: int) -> Page[Contact]:
        self.asked.append((search, page, per_page))
        return Page([CONTACT], 120, page, per_page)

    async def get(self, account_sid: str, contact_id: int) -> Contact:
        if contact_id != CONTACT.contact_id:
            raise NotFound("There is no such contact on the account.")
        return CONTACT

    async def find(self, account_sid: str, phone_number: str) -> Contact:
        if phone_number != CONTACT.phone_number:
            raise NotFound("There is no such contact on the account.")
        return CONTACT

    async def update(self, account_sid: str, contact_id: int, values: Mapping[str, Any]) -> Contact:
        self.asked.append(values)
        return replace(await self.get(account_sid, contact_id), **values)

    async def delete(self, account_sid: str, contact_id: int) -> None:
        await self.get(account_sid, contact_id)


class FakeContactLists:
    """One list, with the contact in it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def create(self, account_sid: str, name: str, description: str | None) -> ContactList:
        return replace(CONTACT_LIST, name=name, description=description)

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[ContactList]:
        self.asked.append((page, per_page))
        return Page([CONTACT_LIST], 1, page, per_page)

    async def get(self, account_sid: str, list_id: int) -> ContactList:
        if list_id != CONTACT_LIST.list_id:
            raise NotFound("There is no such contact list on the account.")
        return CONTACT_LIST

    async def contacts(self, account_sid: str, list_id: int, page: int, per_page: int) -> Page[Contact]:
        await self.get(account_sid, list_id)
        return Page([CONTACT], 1, page, per_page)

    async def update(self, account_sid: str, list_id: int, values: Mapping[str, Any]) -> ContactList:
        self.asked.append(values)
        return replace(await self.get(account_sid, list_id), **values)

    async def delete(self, account_sid: str, list_id: int) -> None:
        await self.get(account_sid, list_id)

    async def add(
        self, account_sid: str, list_id: int, contact_ids: Sequence[int]
    ) -> tuple[ContactList, int]:
        return await self.get(account_sid, list_id), len(contact_ids)

    async def remove(
        self, account_sid: str, list_id: int, contact_ids: Sequence[int]
    ) -> tuple[ContactList, int]:
        return await self.get(account_sid, list_id), 1
