# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field
from trunkline_client.operation import Result


class ContactList(Result):
    """
    A list of contacts.
    """

    id: int
    name: str
    description: str | None
    contactCount: int
    createdAt: datetime
    updatedAt: datetime


class ContactsAdded(Result):
    """
    Result of adding contacts to a list.
    """

    id: int
    added: Annotated[int, Field(description='Those that were not in it before.')]
    contactCount: int


class ContactsRemoved(Result):
    """
    Result of removing contacts from a list.
    """

    id: int
    removed: Annotated[int, Field(description='Those that were in it before.')]
    contactCount: int
