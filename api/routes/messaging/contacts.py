"""Contacts (messaging specification)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.routes.messaging.base import messaging
from api.schemas.base import NoBody, NoQuery
from api.schemas.messaging.base import Deleted
from api.schemas.messaging.contacts import ContactObject, ContactSearch, CreateContact, UpdateContact
from api.schemas.serializers import page_meta, rfc3339
from callcontrol.errors import Conflict
from callcontrol.messaging.models import Contact

__all__ = ["ENDPOINTS", "contact_json"]


async def create_contact(context: Context[CreateContact, NoQuery]) -> Reply:
    """Answer POST /api/v1/contacts."""
    values = context.body.model_dump(exclude_none=True)
    return Reply(contact_json(await context.storage.contacts.create(context.account_sid, values)))


async def list_contacts(context: Context[NoBody, ContactSearch]) -> Reply:
    """Answer GET /api/v1/contacts."""
    query = context.query
    page = await context.storage.contacts.list(context.account_sid, query.search, query.page, query.page_size)
    return Reply([contact_json(contact) for contact in page.items], page_meta(page))


async def get_contact(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /api/v1/contacts/{id}."""
    return Reply(contact_json(await context.storage.contacts.get(context.account_sid, _id(context))))


async def update_contact(context: Context[UpdateContact, NoQuery]) -> Reply:
    """Answer PATCH /api/v1/contacts/{id}."""
    values = context.body.model_dump(exclude_unset=True)
    if values.get("custom_fields", {}) is None:
        values["custom_fields"] = {}
    changed = await context.storage.contacts.update(context.account_sid, _id(context), values)
    return Reply(contact_json(changed))


async def delete_contact(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /api/v1/contacts/{id}."""
    await context.storage.contacts.delete(context.account_sid, _id(context))
    return Reply({"id": _id(context), "deleted": True})


def _id(context: Context[Any, Any]) -> int:
    return int(context.path["id"])


def contact_json(contact: Contact) -> dict[str, Any]:
    """Public fields of a contact."""
    return {
        "id": contact.contact_id,
        "phoneNumber": contact.phone_number,
        "firstName": contact.first_name,
        "lastName": contact.last_name,
        "email": contact.email,
        "customFields": contact.custom_fields,
        "notes": contact.notes,
        "optedOut": contact.opted_out,
        "createdAt": rfc3339(contact.created_at),
        "updatedAt": rfc3339(contact.updated_at),
    }


_CONTACTS = "/api/v1/contacts"
_ONE = _CONTACTS + "/{id}"
_READ = messaging("contacts", "contacts.read")
_WRITE = messaging("contacts", "contacts.write")

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_CONTACTS,
        handler=create_contact,
        summary="Create a contact",
        description="An account has one contact of a number; of a second one the answer names the first.",
        success=201,
        body=CreateContact,
        response=ContactObject,
        errors=(Conflict,),
        **_WRITE,
    ),
    Endpoint(
        method="GET",
        path=_CONTACTS,
        handler=list_contacts,
        summary="List contacts, or search them",
        description="In the order in which they were added: new ones come at the end and shift no page.",
        query=ContactSearch,
        response=ContactObject,
        paged=True,
        **_READ,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        handler=get_contact,
        summary="Get a contact",
        response=ContactObject,
        **_READ,
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        handler=update_contact,
        summary="Update a contact",
        description="What is left out stays as it is, null takes it out. customFields are replaced whole.",
        body=UpdateContact,
        response=ContactObject,
        **_WRITE,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=delete_contact,
        summary="Delete a contact",
        description="It is taken from every list; that its number has opted out is forgotten too.",
        response=Deleted,
        **_WRITE,
    ),
)
