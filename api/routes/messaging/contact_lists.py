"""Lists of contacts (messaging specification)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply
from api.routes.messaging.base import messaging_routes
from api.routes.messaging.contacts import contact_json
from api.schemas.base import NoBody, NoQuery
from api.schemas.messaging.base import Deleted, PagedQuery
from api.schemas.messaging.contacts import (
    ContactIds,
    ContactListObject,
    ContactListPage,
    ContactObject,
    ContactsAdded,
    ContactsRemoved,
    CreateContactList,
    UpdateContactList,
)
from api.schemas.serializers import page_meta, shown
from callcontrol.errors import Conflict
from callcontrol.messaging.contacts import ContactList

__all__ = ["routes"]

_LISTS = "/api/v1/contact-lists"
_ONE = _LISTS + "/{id}"
_MEMBERS = _ONE + "/contacts"

routes = messaging_routes("contact lists", "contacts.read", "contacts.write")


@routes.post(_LISTS, response=ContactListObject, success=201, errors=(Conflict,))
async def create_contact_list(context: Context[CreateContactList, NoQuery]) -> Reply:
    """Create a contact list."""
    body = context.body
    made = await context.storage.contact_lists.create(context.account_sid, body.name, body.description)
    return Reply(_json(made))


@routes.get(_LISTS, response=ContactListObject, paged=True)
async def list_contact_lists(context: Context[NoBody, ContactListPage]) -> Reply:
    """
    List contact lists, newest first.

    All of them, unless pageSize asks for fewer at a time.
    """
    query = context.query
    page = await context.storage.contact_lists.list(context.account_sid, query.page, query.page_size)
    return Reply([_json(found) for found in page.items], page_meta(page))


@routes.get(_ONE, response=ContactListObject)
async def get_contact_list(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a contact list."""
    return Reply(_json(await context.storage.contact_lists.get(context.account_sid, context.number())))


@routes.patch(_ONE, response=ContactListObject)
async def update_contact_list(context: Context[UpdateContactList, NoQuery]) -> Reply:
    """Rename or describe a contact list."""
    values = context.body.model_dump(exclude_unset=True)
    return Reply(
        _json(await context.storage.contact_lists.update(context.account_sid, context.number(), values))
    )


@routes.delete(_ONE, response=Deleted)
async def delete_contact_list(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete a contact list.

    Its contacts stay.
    """
    await context.storage.contact_lists.delete(context.account_sid, context.number())
    return Reply({"id": context.number(), "deleted": True})


@routes.get(_MEMBERS, response=ContactObject, paged=True)
async def list_contacts_of_list(context: Context[NoBody, PagedQuery]) -> Reply:
    """List the contacts of a list."""
    query = context.query
    page = await context.storage.contact_lists.contacts(
        context.account_sid, context.number(), query.page, query.page_size
    )
    return Reply([contact_json(contact) for contact in page.items], page_meta(page))


@routes.post(_MEMBERS, response=ContactsAdded)
async def add_contacts(context: Context[ContactIds, NoQuery]) -> Reply:
    """
    Add contacts to a list.

    Those that are in it stay. When one is unknown, none is added, and the answer names it.
    """
    changed, added = await context.storage.contact_lists.add(
        context.account_sid, context.number(), context.body.contact_ids
    )
    return Reply({"id": changed.list_id, "added": added, "contactCount": changed.contact_count})


@routes.post(_MEMBERS + "/remove", response=ContactsRemoved)
async def remove_contacts(context: Context[ContactIds, NoQuery]) -> Reply:
    """
    Remove contacts from a list.

    Those that are not in it are passed over. The contacts themselves stay.
    """
    changed, removed = await context.storage.contact_lists.remove(
        context.account_sid, context.number(), context.body.contact_ids
    )
    return Reply({"id": changed.list_id, "removed": removed, "contactCount": changed.contact_count})


def _json(contacts: ContactList) -> dict[str, Any]:
    return shown(ContactListObject, contacts, id=contacts.list_id)
