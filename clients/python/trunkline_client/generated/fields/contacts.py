# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class CreateContactFields(TypedDict):
    """
    Fields of `contacts.create`.
    """

    firstName: NotRequired[str | None]
    lastName: NotRequired[str | None]
    email: NotRequired[str | None]
    customFields: NotRequired[dict[str, Any] | None]
    notes: NotRequired[str | None]
    phoneNumber: str


class ListContactsFields(TypedDict):
    """
    Fields of `contacts.list`.
    """

    pageSize: NotRequired[int]
    search: NotRequired[str]


class UpdateContactFields(TypedDict):
    """
    Fields of `contacts.update`.
    """

    firstName: NotRequired[str | None]
    lastName: NotRequired[str | None]
    email: NotRequired[str | None]
    customFields: NotRequired[dict[str, Any] | None]
    notes: NotRequired[str | None]
    optedOut: NotRequired[bool]
