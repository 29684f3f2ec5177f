"""Contacts of accounts over the database."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import AlreadyExists, Conflict, DomainError, FieldError, NotFound, ValidationFailed
from callcontrol.messaging.contacts import MAX_LISTS, ContactList
from callcontrol.messaging.models import Contact
from callcontrol.messaging.store import contact_lists
from callcontrol.messaging.store import contacts as rows
from callcontrol.models import Page

_MOST_NAMED: Final = 100
_SHOWN: Final = 5

T = TypeVar("T")

_NO_CONTACT: Final = partial(NotFound, "There is no such contact on the account.")
_NO_LIST: Final = partial(NotFound, "There is no such contact list on the account.")


class ContactService:
    """
    The contacts of accounts. Contacts of other accounts are treated as missing.

    Values are attributes of `Contact`, checked by the caller.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Contact:
        """
        Add a contact.

        Raises:
            AlreadyExists: The account has a contact of that number.
        """
        now, made_by = utc_now(), new_id()
        wanted = Contact(0, account_sid, created_at=now, updated_at=now, **values)

        def write(connection: Connection) -> Contact | DomainError:
            made = rows.insert(connection, wanted, made_by)
            if made is not None:
                return made
            there = rows.by_number(connection, account_sid, wanted.phone_number)
            contact_id = there.contact_id if there is not None else None
            return AlreadyExists(
                f"phoneNumber: {wanted.phone_number} is the number of contact {contact_id}; update that one.",
                details={"id": contact_id, "phoneNumber": wanted.phone_number},
            )

        return await self._writer.commit(write)

    async def list(self, account_sid: str, search: str | None, page: int, per_page: int) -> Page[Contact]:
        """Contacts of the account in the order in which they were added, all or those that match a search."""
        return await self._database.page(
            partial(rows.page, account_sid=account_sid, search=search), page, per_page
        )

    async def get(self, account_sid: str, contact_id: int) -> Contact:
        """
        One contact.

        Raises:
            NotFound: The contact does not exist on the account.
        """
        found = await self._database.look_up(
            partial(rows.get, account_sid=account_sid, contact_id=contact_id)
        )
        return _there(found, _NO_CONTACT)

    async def find(self, account_sid: str, phone_number: str) -> Contact:
        """
        The contact of a number in E.164.

        Raises:
            NotFound: The contact does not exist on the account.
        """
        found = await self._database.look_up(
            partial(rows.by_number, account_sid=account_sid, number=phone_number)
        )
        return _there(found, _NO_CONTACT)

    async def update(self, account_sid: str, contact_id: int, values: Mapping[str, Any]) -> Contact:
        """
        Change a contact.

        Raises:
            NotFound: The contact does not exist on the account.
        """
        now = utc_now()

        def write(connection: Connection) -> Contact | DomainError:
            contact = rows.get(connection, account_sid, contact_id)
            if contact is None:
                return _NO_CONTACT()
            changed = replace(contact, **values)
            if changed != contact:
                changed = replace(changed, updated_at=now)
                rows.update(connection, changed)
            return changed

        return await self._writer.commit(write)

    async def delete(self, account_sid: str, contact_id: int) -> None:
        """
        Delete a contact, which removes it from every list.

        Raises:
            NotFound: The contact does not exist on the account.
        """
        await self._writer.commit(
            lambda connection: None if rows.delete(connection, account_sid, contact_id) else _NO_CONTACT()
        )


class ContactListService:
    """The contact lists of accounts. Lists of other accounts are treated as missing."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def create(self, account_sid: str, name: str, description: str | None) -> ContactList:
        """
        Make an empty list.

        Raises:
            Conflict: The account has the maximum number of lists.
        """
        now, made_by = utc_now(), new_id()
        wanted = ContactList(0, account_sid, name, description, now, now)

        def write(connection: Connection) -> ContactList | DomainError:
            if contact_lists.number_of(connection, account_sid) >= MAX_LISTS:
                return Conflict(f"The account has {MAX_LISTS} contact lists; delete one first.")
            return contact_lists.insert(connection, wanted, made_by)

        return await self._writer.commit(write)

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[ContactList]:
        """Lists of the account, newest first."""
        return await self._database.page(partial(contact_lists.page, account_sid=account_sid), page, per_page)

    async def get(self, account_sid: str, list_id: int) -> ContactList:
        """
        One list.

        Raises:
            NotFound: The list does not exist on the account.
        """
        found = await self._database.read(
            partial(contact_lists.get, account_sid=account_sid, list_id=list_id)
        )
        return _there(found, _NO_LIST)

    async def contacts(self, account_sid: str, list_id: int, page: int, per_page: int) -> Page[Contact]:
        """
        The contacts of a list, in the order in which they became contacts.

        Raises:
            NotFound: The list does not exist on the account.
        """

        def read(connection: Connection) -> Page[Contact] | None:
            if contact_lists.get(connection, account_sid, list_id) is None:
                return None
            offset = (page - 1) * per_page
            found, total = rows.in_list(connection, list_id, offset=offset, limit=per_page)
            return Page(found, total, page, per_page)

        return _there(await self._database.read(read), _NO_LIST)

    async def update(self, account_sid: str, list_id: int, values: Mapping[str, Any]) -> ContactList:
        """
        Change the name or the description of a list.

        Raises:
            NotFound: The list does not exist on the account.
        """
        now = utc_now()

        def change(connection: Connection, found: ContactList) -> ContactList:
            changed = replace(found, **values, updated_at=now)
            contact_lists.update(connection, changed)
            return changed

        return await self._change(account_sid, list_id, change)

    async def delete(self, account_sid: str, list_id: int) -> None:
        """
        Delete a list; its contacts stay.

        Raises:
            NotFound: The list does not exist on the account.
        """
        await self._change(
            account_sid, list_id, lambda connection, _: contact_lists.delete(connection, account_sid, list_id)
        )

    async def add(
        self, account_sid: str, list_id: int, contact_ids: Sequence[int]
    ) -> tuple[ContactList, int]:
        """
        Add contacts to a list; return the list afterwards, and how many were not in it before.

        Raises:
            NotFound: The list does not exist on the account.
            ValidationFailed: Names every id that is no contact of the account; then none is added.
        """

        def change(connection: Connection, before: ContactList) -> tuple[ContactList, int] | DomainError:
            known = rows.known(connection, account_sid, contact_ids)
            if not known.issuperset(contact_ids):
                return _unknown(contact_ids, known)
            contact_lists.add(connection, list_id, known)
            return _difference(connection, before)

        return await self._change(account_sid, list_id, change)

    async def remove(
        self, account_sid: str, list_id: int, contact_ids: Sequence[int]
    ) -> tuple[ContactList, int]:
        """
        Remove contacts from a list; return the list afterwards, and how many were in it before.

        Raises:
            NotFound: The list does not exist on the account.
        """

        def change(connection: Connection, before: ContactList) -> tuple[ContactList, int]:
            contact_lists.remove(connection, list_id, contact_ids)
            return _difference(connection, before)

        return await self._change(account_sid, list_id, change)

    async def _change(
        self, account_sid: str, list_id: int, change: Callable[[Connection, ContactList], T | DomainError]
    ) -> T:
        """Change a list of the account in the next transaction."""

        def write(connection: Connection) -> T | DomainError:
            found = contact_lists.get(connection, account_sid, list_id)
            return _NO_LIST() if found is None else change(connection, found)

        return await self._writer.commit(write)


def _difference(connection: Connection, before: ContactList) -> tuple[ContactList, int]:
    """Return the list as it is now, and the absolute change of its contact count."""
    after = contact_lists.get(connection, before.account_sid, before.list_id) or before
    return after, abs(after.contact_count - before.contact_count)


def _unknown(contact_ids: Sequence[int], known: set[int]) -> ValidationFailed:
    unknown = [
        FieldError(f"contactIds[{index}]", f"{contact_id} is no contact of the account")
        for index, contact_id in enumerate(contact_ids)
        if contact_id not in known
    ]
    strangers = [str(contact_id) for contact_id in dict.fromkeys(contact_ids) if contact_id not in known]
    named = ", ".join(strangers[:_SHOWN]) + (", ..." if len(strangers) > _SHOWN else "")
    return ValidationFailed(
        unknown[:_MOST_NAMED],
        f"contactIds: none was added, because these are no contacts of the account: {named}",
    )


def _there(found: T | None, refusal: Callable[[], NotFound]) -> T:
    if found is None:
        raise refusal()
    return found
