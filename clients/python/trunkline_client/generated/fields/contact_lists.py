# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import NotRequired, TypedDict


class CreateContactListFields(TypedDict):
    """
    Fields of `contact_lists.create`.
    """

    name: str
    description: NotRequired[str | None]


class ListContactListsFields(TypedDict):
    """
    Fields of `contact_lists.list`.
    """

    pageSize: NotRequired[int]


class UpdateContactListFields(TypedDict):
    """
    Fields of `contact_lists.update`.
    """

    name: NotRequired[str]
    description: NotRequired[str | None]


class ListContactsOfListFields(TypedDict):
    """
    Fields of `contact_lists.list_contacts`.
    """

    pageSize: NotRequired[int]


class AddContactsFields(TypedDict):
    """
    Fields of `contact_lists.add_contacts`.
    """

    contactIds: list[int]


class RemoveContactsFields(TypedDict):
    """
    Fields of `contact_lists.remove_contacts`.
    """

    contactIds: list[int]
