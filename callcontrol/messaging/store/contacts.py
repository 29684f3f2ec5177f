"""Contacts of accounts; lists of them are in ``contact_lists``."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.statements import Statement, insert_into
from callcontrol.database.tables.contacts import contact_list_members, contacts
from callcontrol.database.values import pack, to_micros, to_moment, unpack
from callcontrol.messaging.contacts import search_text, wanted
from callcontrol.messaging.models import Contact

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
    _INSERT.run(
        connection,
        {
            "account_sid": contact.account_sid,
            "made_by": made_by,
            "phone_number": contact.phone_number,
            "created_at": to_micros(contact.created_at),
            **_mutable(contact),
        },
    )
    row = connection.execute(
        sa.select(contacts).where(
            contacts.c.account_sid == contact.account_sid,
            contacts.c.phone_number == contact.phone_number,
            contacts.c.made_by == made_by,
        )
    ).first()
    return _contact(row) if row is not None else None


def get(connection: Connection, account_sid: str, contact_id: int) -> Contact | None:
    """A contact of the account."""
    row = connection.execute(sa.select(contacts).where(*_one(account_sid, contact_id))).first()
    return _contact(row) if row is not None else None


def by_number(connection: Connection, account_sid: str, number: str) -> Contact | None:
    """The account's contact of a number in E.164."""
    row = connection.execute(
        sa.select(contacts).where(contacts.c.account_sid == account_sid, contacts.c.phone_number == number)
    ).first()
    return _contact(row) if row is not None else None


def update(connection: Connection, contact: Contact) -> None:
    """Write the changed fields of a contact; its number stays."""
    connection.execute(
        sa.update(contacts).where(*_one(contact.account_sid, contact.contact_id)).values(_mutable(contact))
    )


def delete(connection: Connection, account_sid: str, contact_id: int) -> bool:
    """Delete a contact, which removes it from all lists; return True if it existed."""
    return connection.execute(sa.delete(contacts).where(*_one(account_sid, contact_id))).rowcount > 0


def page(
    connection: Connection, account_sid: str, search: str | None = None, *, offset: int, limit: int
) -> tuple[list[Contact], int]:
    """
    A page of the account's contacts in the order in which they were added, and their total number.

    ``search`` keeps those whose number, names or e-mail contain it.
    """
    found = sa.select(contacts.c.contact_id).where(contacts.c.account_sid == account_sid)
    text = wanted(search or "")
    if not text:
        return _page(connection, found, offset, limit)
    found = found.where(contacts.c.search_text.contains(text, autoescape=True))
    # A search scans all contacts. If it finds few, the first query has scanned them all; if it finds many,
    # that query ends early.
    first = list(connection.scalars(found.order_by(contacts.c.contact_id).limit(_FEW)))
    if len(first) == _FEW:
        return _page(connection, found, offset, limit)
    return _by_ids(connection, first[offset : offset + limit]), len(first)


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
    total = connection.scalar(sa.select(sa.func.count()).select_from(found.subquery())) or 0
    if offset >= total:
        return [], total
    places = found.order_by(found.selected_columns.contact_id).offset(offset).limit(limit)
    return _by_ids(connection, list(connection.scalars(places))), total


def _by_ids(connection: Connection, contact_ids: Collection[int]) -> list[Contact]:
    rows = connection.execute(
        sa.select(contacts).where(contacts.c.contact_id.in_(contact_ids)).order_by(contacts.c.contact_id)
    )
    return [_contact(row) for row in rows]


def _one(account_sid: str, contact_id: int) -> tuple[sa.ColumnElement[bool], ...]:
    return contacts.c.contact_id == contact_id, contacts.c.account_sid == account_sid


def _mutable(contact: Contact) -> dict[str, Any]:
    return {
        "first_name": contact.first_name,
        "last_name": contact.last_name,
        "email": contact.email,
        "custom_fields": pack(contact.custom_fields) if contact.custom_fields else None,
        "notes": contact.notes,
        "opted_out": contact.opted_out,
        "search_text": search_text(contact),
        "updated_at": to_micros(contact.updated_at),
    }


def _contact(row: Row[Any]) -> Contact:
    return Contact(
        contact_id=row.contact_id,
        account_sid=row.account_sid,
        phone_number=row.phone_number,
        created_at=to_moment(row.created_at),
        updated_at=to_moment(row.updated_at),
        first_name=row.first_name,
        last_name=row.last_name,
        email=row.email,
        custom_fields=unpack(row.custom_fields) if row.custom_fields is not None else {},
        notes=row.notes,
        opted_out=row.opted_out,
    )
