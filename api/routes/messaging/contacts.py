"""Contacts (messaging specification)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply
from api.routes.messaging.base import messaging_routes
from api.schemas.base import NoBody, NoQuery
from api.schemas.messaging.base import Deleted
from api.schemas.messaging.contacts import ContactObject, ContactSearch, CreateContact, UpdateContact
from api.schemas.serializers import page_meta, shown
from callcontrol.errors import AlreadyExists
from callcontrol.messaging.models import Contact

__all__ = ["routes", "contact_json"]

_CONTACTS = "/api/v1/contacts"
_ONE = _CONTACTS + "/{id}"

routes = messaging_routes("contacts", "contacts.read", "contacts.write")


@routes.post(_CONTACTS, response=ContactObject, success=201, errors=(AlreadyExists,))
async def create_contact(context: Context[CreateContact, NoQuery]) -> Reply:
    """
    Create a contact.

    An account has one contact of a number; of a second one the answer names the first.
    """
    values = context.body.model_dump(exclude_none=True)
    return Reply(contact_json(await context.storage.contacts.create(context.account_sid, values)))


@routes.get(_CONTACTS, response=ContactObject, paged=True)
async def list_contacts(context: Context[NoBody, ContactSearch]) -> Reply:
    """
    List contacts, or search them.

    In the order in which they were added: new ones come at the end and shift no page.
    """
    query = context.query
    page = await context.storage.contacts.list(context.account_sid, query.search, query.page, query.page_size)
    return Reply([contact_json(contact) for contact in page.items], page_meta(page))


@routes.get(_ONE, response=ContactObject)
async def get_contact(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a contact."""
    return Reply(contact_json(await context.storage.contacts.get(context.account_sid, context.number())))


@routes.patch(_ONE, response=ContactObject)
async def update_contact(context: Context[UpdateContact, NoQuery]) -> Reply:
    """
    Update a contact.

    What is left out stays as it is, null takes it out. customFields are replaced whole.
    """
    values = context.body.model_dump(exclude_unset=True)
    if values.get("custom_fields", {}) is None:
        values["custom_fields"] = {}
    changed = await context.storage.contacts.update(context.account_sid, context.number(), values)
    return Reply(contact_json(changed))


@routes.delete(_ONE, response=Deleted)
async def delete_contact(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete a contact.

    It is taken from every list; that its number has opted out is forgotten too.
    """
    await context.storage.contacts.delete(context.account_sid, context.number())
    return Reply({"id": context.number(), "deleted": True})


def contact_json(contact: Contact) -> dict[str, Any]:
    """Public fields of a contact."""
    return shown(ContactObject, contact, id=contact.contact_id)
