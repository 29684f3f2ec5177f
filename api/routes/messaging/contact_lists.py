"""Lists of contacts (messaging specification)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.routes.messaging.base import messaging
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
from api.schemas.serializers import page_meta, rfc3339
from callcontrol.errors import Conflict
from callcontrol.messaging.contacts import ContactList

__all__ = ["ENDPOINTS"]


async def create_contact_list(context: Context[CreateContactList, NoQuery]) -> Reply:
    """Answer POST /api/v1/contact-lists."""
    body = context.body
    made = await context.storage.contact_lists.create(context.account_sid, body.name, body.description)
    return Reply(_json(made))


async def list_contact_lists(context: Context[NoBody, ContactListPage]) -> Reply:
    """Answer GET /api/v1/contact-lists."""
    query = context.query
    page = await context.storage.contact_lists.list(context.account_sid, query.page, query.page_size)
    return Reply([_json(found) for found in page.items], page_meta(page))


async def get_contact_list(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /api/v1/contact-lists/{id}."""
    return Reply(_json(await context.storage.contact_lists.get(context.account_sid, _id(context))))


async def update_contact_list(context: Context[UpdateContactList, NoQuery]) -> Reply:
    """Answer PATCH /api/v1/contact-lists/{id}."""
    values = context.body.model_dump(exclude_unset=True)
    return Reply(_json(await context.storage.contact_lists.update(context.account_sid, _id(context), values)))


async def delete_contact_list(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /api/v1/contact-lists/{id}."""
    await context.storage.contact_lists.delete(context.account_sid, _id(context))
    return Reply({"id": _id(context), "deleted": True})


async def list_contacts_of_list(context: Context[NoBody, PagedQuery]) -> Reply:
    """Answer GET /api/v1/contact-lists/{id}/contacts."""
    query = context.query
    page = await context.storage.contact_lists.contacts(
        context.account_sid, _id(context), query.page, query.page_size
    )
    return Reply([contact_json(contact) for contact in page.items], page_meta(page))


async def add_contacts(context: Context[ContactIds, NoQuery]) -> Reply:
    """Answer POST /api/v1/contact-lists/{id}/contacts."""
    changed, added = await context.storage.contact_lists.add(
        context.account_sid, _id(context), context.body.contact_ids
    )
    return Reply({"id": changed.list_id, "added": added, "contactCount": changed.contact_count})


async def remove_contacts(context: Context[ContactIds, NoQuery]) -> Reply:
    """Answer POST /api/v1/contact-lists/{id}/contacts/remove."""
    changed, removed = await context.storage.contact_lists.remove(
        context.account_sid, _id(context), context.body.contact_ids
    )
    return Reply({"id": changed.list_id, "removed": removed, "contactCount": changed.contact_count})


def _id(context: Context[Any, Any]) -> int:
    return int(context.path["id"])


def _json(shown: ContactList) -> dict[str, Any]:
    return {
        "id": shown.list_id,
        "name": shown.name,
        "description": shown.description,
        "contactCount": shown.contact_count,
        "createdAt": rfc3339(shown.created_at),
        "updatedAt": rfc3339(shown.updated_at),
    }


_LISTS = "/api/v1/contact-lists"
_ONE = _LISTS + "/{id}"
_MEMBERS = _ONE + "/contacts"
_READ = messaging("contact lists", "contacts.read")
_WRITE = messaging("contact lists", "contacts.write")

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_LISTS,
        handler=create_contact_list,
        summary="Create a contact list",
        success=201,
        body=CreateContactList,
        response=ContactListObject,
        errors=(Conflict,),
        **_WRITE,
    ),
    Endpoint(
        method="GET",
        path=_LISTS,
        handler=list_contact_lists,
        summary="List contact lists, newest first",
        description="All of them, unless pageSize asks for fewer at a time.",
        query=ContactListPage,
        response=ContactListObject,
        paged=True,
        **_READ,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        handler=get_contact_list,
        summary="Get a contact list",
        response=ContactListObject,
        **_READ,
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        handler=update_contact_list,
        summary="Rename or describe a contact list",
        body=UpdateContactList,
        response=ContactListObject,
        **_WRITE,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        handler=delete_contact_list,
        summary="Delete a contact list",
        description="Its contacts stay.",
        response=Deleted,
        **_WRITE,
    ),
    Endpoint(
        method="GET",
        path=_MEMBERS,
        handler=list_contacts_of_list,
        summary="List the contacts of a list",
        query=PagedQuery,
        response=ContactObject,
        paged=True,
        **_READ,
    ),
    Endpoint(
        method="POST",
        path=_MEMBERS,
        handler=add_contacts,
        summary="Add contacts to a list",
        description="Those that are in it stay. When one is unknown, none is added, and the answer names it.",
        body=ContactIds,
        response=ContactsAdded,
        **_WRITE,
    ),
    Endpoint(
        method="POST",
        path=_MEMBERS + "/remove",
        handler=remove_contacts,
        summary="Take contacts out of a list",
        description="Those that are not in it are passed over. The contacts themselves stay.",
        body=ContactIds,
        response=ContactsRemoved,
        **_WRITE,
    ),
)
