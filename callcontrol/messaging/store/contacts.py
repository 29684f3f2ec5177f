"""Contacts of accounts; lists of them are in ``contact_lists``."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.rows import Codec, ValueTable, count
from callcontrol.database.statements import Statement, insert_into, pack, unpack
from callcontrol.database.tables.contacts import contact_list_members, contacts
from callcontrol.messaging.contacts import search_text, wanted
from callcontrol.messaging.models import Contact

_CUSTOM_FIELDS: Final = Codec(
    lambda custom: pack(custom) if custom else None, lambda text: unpack(text or "{}")
)
_CONTACTS: Final = ValueTable(contacts, Contact, codecs={"custom_fields": _CUSTOM_FIELDS})
_INSERT: Final = insert_into(contacts, ignore_conflict=True)
_FEW: Final = 1000
_OPTED_OUT: Final = Statement(
    sa.select(contacts.c.contact_id).where(
        contacts.c.account_sid == sa.bindparam("account_sid"),
        contacts.c.phone_number == sa.bindparam("number"),
        contacts.c.opted_out,
    )
)


def insert(connection: Connection, contact: Contact, made_by: str) -> Contact | None:
    """
    Write a new contact, ignoring its identifier, and return it with the one that the database assigned.

    None when the account has a contact of that number already. ``made_by`` names the request: a repeated
    request returns the contact that it made before.
    """
    row = _CONTACTS.row_of(connection, contact)
    _INSERT.run(connection, {**row, "made_by": made_by, "search_text": search_text(contact)})
    own = _of_number(contact.account_sid, contact.phone_number)
    return _CONTACTS.first(connection, *own, contacts.c.made_by == made_by)


def get(connection: Connection, account_sid: str, contact_id: int) -> Contact | None:
    """A contact of the account."""
    return _CONTACTS.first(connection, *_one(account_sid, contact_id))


def by_number(connection: Connection, account_sid: str, number: str) -> Contact | None:
    """The account's contact of a number in E.164."""
    return _CONTACTS.first(connection, *_of_number(account_sid, number))


def update(connection: Connection, contact: Contact) -> None:
    """Write the changed fields of a contact."""
    _CONTACTS.update(connection, contact, search_text=search_text(contact))


def delete(connection: Connection, account_sid: str, contact_id: int) -> bool:
    """Delete a contact, which removes it from all lists; return True if it existed."""
    return connection.execute(sa.delete(contacts).where(*_one(account_sid, contact_id))).rowcount > 0


def page(
    connection: Connection, account_sid: str, search: str | None, *, offset: int, limit: int
) -> tuple[list[Contact], int]:
    """
    A page of the account's contacts in the order in which they were added, and their total number.

    ``search`` keeps those whose number, names or e-mail contain it.
    """
    found = sa.select(contacts.c.contact_id).where(contacts.c.account_sid == account_sid)
    texts = wanted(search or "")
    if not texts:
        return _page(connection, found, offset, limit)
    found = found.where(sa.or_(*(contacts.c.search_text.contains(text, autoescape=True) for text in texts)))
    # A search scans all contacts. If it finds few, the first query has scanned them all; if it finds many,
    # that query ends early.
    first = list(connection.scalars(found.order_by(contacts.c.contact_id).limit(_FEW)))
    if len(first) == _FEW:
        return _page(connection, found, offset, limit)
    return _CONTACTS.by_keys(connection, first[offset : offset + limit]), len(first)


def in_list(connection: Connection, list_id: int, *, offset: int, limit: int) -> tuple[list[Contact], int]:
    """A page of a list in the order in which its members became contacts, and their total number."""
    members = contact_list_members.c
    return _page(connection, sa.select(members.contact_id).where(members.list_id == list_id), offset, limit)


def known(connection: Connection, account_sid: str, contact_ids: Collection[int]) -> set[int]:
    """The ids among these that are contacts of the account."""
    return set(
        connection.scalars(
            sa.select(contacts.c.contact_id).where(
                contacts.c.account_sid == account_sid, contacts.c.contact_id.in_(contact_ids)
            )
        )
    )


def is_opted_out(connection: Connection, account_sid: str, number: str) -> bool:
    """True if a number, in E.164, belongs to a contact of the account who has opted out."""
    return _OPTED_OUT.first(connection, {"account_sid": account_sid, "number": number}) is not None


def opted_out(connection: Connection, account_sid: str, numbers: Collection[str]) -> set[str]:
    """The numbers among these, in E.164, of contacts of the account who have opted out."""
    rows = connection.scalars(
        sa.select(contacts.c.phone_number).where(
            contacts.c.account_sid == account_sid,
            contacts.c.phone_number.in_(numbers),
            contacts.c.opted_out.is_(True),
        )
    )
    return set(rows)


def set_opted_out(
    connection: Connection, account_sid: str, number: str, opted_out: bool, now: datetime
) -> bool:
    """
    Opt a number out of messages, or in again; return True if that is a change.

    An unknown number that opts out becomes a contact: the opt-out has to be stored.
    """
    contact = by_number(connection, account_sid, number)
    if contact is not None:
        if contact.opted_out != opted_out:
            update(connection, replace(contact, opted_out=opted_out, updated_at=now))
        return contact.opted_out != opted_out
    if opted_out:
        insert(connection, Contact(0, account_sid, number, now, now, opted_out=True), made_by="opt-out")
    return opted_out


def _page(
    connection: Connection, found: sa.Select[tuple[int]], offset: int, limit: int
) -> tuple[list[Contact], int]:
    """Contacts by a query for their identifiers, and how many it finds."""
    total = count(connection, found.subquery())
    if offset >= total:
        return [], total
    places = found.order_by(found.selected_columns.contact_id).offset(offset).limit(limit)
    return _CONTACTS.by_keys(connection, list(connection.scalars(places))), total


def _of_number(account_sid: str, number: str) -> tuple[sa.ColumnElement[bool], ...]:
    return contacts.c.account_sid == account_sid, contacts.c.phone_number == number


def _one(account_sid: str, contact_id: int) -> tuple[sa.ColumnElement[bool], ...]:
    return contacts.c.contact_id == contact_id, contacts.c.account_sid == account_sid
