"""Contact lists of accounts."""

from collections.abc import Collection
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.rows import Part, ValueTable, count
from callcontrol.database.statements import insert_into
from callcontrol.database.tables.contacts import contact_list_members, contact_lists
from callcontrol.messaging.contacts import ContactList

_COUNT: Final = Part(lambda *_: {}, lambda _, row: row["contact_count"])
_LISTS: Final = ValueTable(contact_lists, ContactList, parts={"contact_count": _COUNT})
_INSERT: Final = insert_into(contact_lists, ignore_conflict=True)
_ADD: Final = insert_into(contact_list_members, ignore_conflict=True)


def insert(connection: Connection, made: ContactList, made_by: str) -> ContactList:
    """
    Write a new list, ignoring its identifier, and return it with the one that the database assigned.

    ``made_by`` names the request: a repeated request returns the list that it made before.
    """
    _INSERT.run(connection, {**_LISTS.row_of(connection, made), "made_by": made_by})
    row = connection.execute(_lists(contact_lists.c.made_by == made_by)).one()
    return _LISTS.value_of(connection, row)


def get(connection: Connection, account_sid: str, list_id: int) -> ContactList | None:
    """A list of the account."""
    row = connection.execute(_lists(*_one(account_sid, list_id))).first()
    return None if row is None else _LISTS.value_of(connection, row)


def update(connection: Connection, changed: ContactList) -> None:
    """Write the changed fields of a list."""
    _LISTS.update(connection, changed)


def delete(connection: Connection, account_sid: str, list_id: int) -> bool:
    """Delete a list, and none of its contacts; return True if it existed."""
    return connection.execute(sa.delete(contact_lists).where(*_one(account_sid, list_id))).rowcount > 0


def number_of(connection: Connection, account_sid: str) -> int:
    """Number of lists of the account."""
    return count(connection, contact_lists, contact_lists.c.account_sid == account_sid)


def page(
    connection: Connection, account_sid: str, *, offset: int, limit: int
) -> tuple[list[ContactList], int]:
    """A page of the account's lists, newest first, and their total number."""
    wanted = _lists(contact_lists.c.account_sid == account_sid).order_by(contact_lists.c.list_id.desc())
    rows = connection.execute(wanted.offset(offset).limit(limit))
    return [_LISTS.value_of(connection, row) for row in rows], number_of(connection, account_sid)


def add(connection: Connection, list_id: int, contact_ids: Collection[int]) -> None:
    """Add contacts of the list's account to a list; those that are in it stay."""
    _ADD.many(connection, [{"list_id": list_id, "contact_id": contact_id} for contact_id in contact_ids])


def remove(connection: Connection, list_id: int, contact_ids: Collection[int]) -> int:
    """Remove contacts from a list; return how many were in it."""
    members = contact_list_members.c
    return connection.execute(
        sa.delete(contact_list_members).where(members.list_id == list_id, members.contact_id.in_(contact_ids))
    ).rowcount


def _one(account_sid: str, list_id: int) -> tuple[sa.ColumnElement[bool], ...]:
    return contact_lists.c.list_id == list_id, contact_lists.c.account_sid == account_sid


def _lists(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Lists with the number of contacts of each, counted by the query."""
    counted = (
        sa.select(sa.func.count())
        .select_from(contact_list_members)
        .where(contact_list_members.c.list_id == contact_lists.c.list_id)
    )
    return sa.select(contact_lists, counted.scalar_subquery().label("contact_count")).where(*conditions)
