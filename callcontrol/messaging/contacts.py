"""What makes sense of a contact, and how contacts are found by what is typed."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from callcontrol.messaging.models import Contact

__all__ = ["ContactList", "folded", "is_email", "search_text", "wanted"]

# Beyond ASCII whatever is no space: the letters of many scripts are followed by marks of their own.
_LETTER: Final = r"[^\s\x00-/:-@\[-`{-\xa0]"
_LABEL: Final = rf"{_LETTER}(?:(?:-|{_LETTER}){{0,61}}{_LETTER})?"
_ATOM: Final = r"[^\s\x00-\x20()<>\[\]:;@\\,.\"\x7f-\xa0]+"
_EMAIL: Final = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+{_LABEL}")
MAX_EMAIL_CHARS: Final = 254
_MAX_LOCAL_CHARS: Final = 64

_TYPED_NUMBER: Final = re.compile(r"\+?[0-9 .()-]*[0-9][0-9 .()-]*", re.ASCII)
_SEPARATORS: Final = str.maketrans("", "", " .()-")


@dataclass(frozen=True, slots=True)
class ContactList:
    """A list that contacts are put into, with how many there are in it."""

    list_id: int
    account_sid: str
    name: str
    description: str | None
    created_at: datetime
    updated_at: datetime
    contact_count: int = 0


def is_email(text: str) -> bool:
    """
    Whether text is an e-mail address: what RFC 5321 calls a dot-string, at a domain with a dot.

    Letters of all scripts may stand where letters may (RFC 6531); quoted local parts and addresses of hosts
    are not taken.
    """
    local, _, _ = text.partition("@")
    return len(text) <= MAX_EMAIL_CHARS and len(local) <= _MAX_LOCAL_CHARS and bool(_EMAIL.fullmatch(text))


def folded(text: str) -> str:
    """Text without the differences that a search overlooks: case, and how letters are composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def search_text(contact: Contact) -> str:
    """What a search looks at: number, names and e-mail, each in a line of its own."""
    name = " ".join(part for part in (contact.first_name, contact.last_name) if part)
    return folded("\n".join((contact.phone_number, name, contact.email or "")))


def wanted(search: str) -> str:
    """
    What has to stand in the search text of a contact that is looked for.

    Spaces around it are nothing to look for; those and other separators within a number are left out, as in
    the numbers of contacts.
    """
    text = " ".join(search.split())
    return text.translate(_SEPARATORS) if _TYPED_NUMBER.fullmatch(text) else folded(text)
