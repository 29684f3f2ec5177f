"""Request and response models of contacts and contact lists."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field

from api.schemas.base import all_optional
from api.schemas.common import E164, Filled, Page, Timestamp
from api.schemas.messaging.base import CamelQuery, CamelRequest, CamelResponse, PagedQuery
from callcontrol.errors import FieldError
from callcontrol.messaging.contacts import (
    MAX_CUSTOM_BYTES,
    MAX_CUSTOM_DEPTH,
    MAX_EMAIL_CHARS,
    MAX_LISTS,
    is_email,
    wrong_custom_fields,
)

__all__ = [
    "ContactIds",
    "ContactListObject",
    "ContactListPage",
    "ContactObject",
    "ContactSearch",
    "ContactsAdded",
    "ContactsRemoved",
    "CreateContact",
    "CreateContactList",
    "UpdateContact",
    "UpdateContactList",
]

_LARGEST_ID = 2**63 - 1


def _email(text: str) -> str:
    if not is_email(text):
        raise ValueError("must be an e-mail address, such as asha@example.com")
    return text


_Email = Annotated[
    str, Field(max_length=MAX_EMAIL_CHARS, json_schema_extra={"format": "email"}), AfterValidator(_email)
]
_ListName = Annotated[Filled, Field(max_length=100)]
_PersonName = Annotated[str, Field(max_length=100)]
_CustomFields = Annotated[
    dict[str, Any],
    Field(description=f"Any object of {MAX_CUSTOM_BYTES // 1024} KiB and {MAX_CUSTOM_DEPTH} levels at most."),
]


class _ContactFields(CamelRequest):
    first_name: _PersonName | None = None
    last_name: _PersonName | None = None
    email: _Email | None = None
    custom_fields: _CustomFields | None = None
    notes: Annotated[str, Field(max_length=2000)] | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        return wrong_custom_fields(given.get("customFields"))


class CreateContact(_ContactFields):
    """A new contact."""

    not_accepted: ClassVar[Mapping[str, str]] = {"optedOut": "is set by PATCH, once the contact is there"}

    phone_number: E164


class UpdateContact(_ContactFields):
    """Fields of a contact to change; null removes a value, omitted fields keep theirs."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    not_accepted: ClassVar[Mapping[str, str]] = {
        "phoneNumber": "cannot be changed; delete the contact and create one of the other number"
    }

    opted_out: Annotated[bool, Field(description="Opted out: nothing is sent to this number.")] = False


class ContactSearch(PagedQuery):
    """Search and page of the list of contacts."""

    search: Annotated[
        str,
        Field(max_length=200, description="Stands in the number, the names or the e-mail; case is nothing."),
    ] = ""


class CreateContactList(CamelRequest):
    """A new list."""

    name: _ListName
    description: Annotated[str, Field(max_length=1000)] | None = None


class UpdateContactList(CamelRequest):
    """Fields of a list to change; null removes the description."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    name: _ListName = ""
    description: Annotated[str, Field(max_length=1000)] | None = None


class ContactListPage(CamelQuery):
    """Page of the contact lists; default: all of them."""

    page: Page = 1
    page_size: Annotated[int, Field(ge=1, le=MAX_LISTS)] = MAX_LISTS


class ContactIds(CamelRequest):
    """Ids of contacts."""

    contact_ids: Annotated[
        list[Annotated[int, Field(ge=1, le=_LARGEST_ID)]], Field(min_length=1, max_length=1000)
    ]


class ContactObject(CamelResponse):
    """A contact."""

    id: int
    phone_number: str
    first_name: str | None
    last_name: str | None
    email: str | None
    custom_fields: dict[str, Any]
    notes: str | None
    opted_out: bool
    created_at: Timestamp
    updated_at: Timestamp


class ContactListObject(CamelResponse):
    """A list of contacts."""

    id: int
    name: str
    description: str | None
    contact_count: int
    created_at: Timestamp
    updated_at: Timestamp


class ContactsAdded(CamelResponse):
    """Result of adding contacts to a list."""

    id: int
    added: Annotated[int, Field(description="Those that were not in it before.")]
    contact_count: int


class ContactsRemoved(CamelResponse):
    """Result of removing contacts from a list."""

    id: int
    removed: Annotated[int, Field(description="Those that were in it before.")]
    contact_count: int
