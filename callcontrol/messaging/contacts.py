"""Validation of contacts, and the text by which a search finds them."""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from callcontrol.e164 import SEPARATORS, read_number
from callcontrol.errors import FieldError
from callcontrol.messaging.models import Contact

MAX_LISTS: Final = 1000
"""Contact lists that an account may have."""
MAX_CUSTOM_BYTES: Final = 16_384
"""Size of the custom fields of a contact, as JSON without spaces in UTF-8."""
MAX_CUSTOM_DEPTH: Final = 8

# Beyond ASCII any character but spaces: the letters of many scripts are followed by marks of their own.
_LETTER: Final = r"[^\s\x00-/:-@\[-`{-\xa0]"
_LABEL: Final = rf"{_LETTER}(?:(?:-|{_LETTER}){{0,61}}{_LETTER})?"
_ATOM: Final = r"[^\s\x00-\x20()<>\[\]:;@\\,.\"\x7f-\xa0]+"
_EMAIL: Final = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+{_LABEL}")
MAX_EMAIL_CHARS: Final = 254
_MAX_LOCAL_BYTES: Final = 64

_MAX_SEARCH_BYTES: Final = 2400

_TYPED_NUMBER: Final = re.compile(r"\+?[0-9 .()-]*[0-9][0-9 .()-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ContactList:
    """A list of contacts, with their number."""

    list_id: int
    account_sid: str
    name: str
    description: str | None
    created_at: datetime
    updated_at: datetime
    contact_count: int = 0


def is_email(text: str) -> bool:
    """
    True if text is an e-mail address: a dot-string of RFC 5321, at a domain with a dot.

    Letters of all scripts may stand where letters may (RFC 6531); quoted local parts and addresses of hosts
    are refused.
    """
    octets = text.encode()
    if len(octets) > MAX_EMAIL_CHARS or octets.find(b"@") > _MAX_LOCAL_BYTES:
        return False
    return _EMAIL.fullmatch(text) is not None


def wrong_custom_fields(given: Any) -> list[FieldError]:
    """Errors in the custom fields of a contact: any JSON object; other values are refused elsewhere."""
    if not isinstance(given, Mapping):
        return []
    if _depth(given) > MAX_CUSTOM_DEPTH:
        return [FieldError("customFields", f"must not be nested more than {MAX_CUSTOM_DEPTH} deep")]
    written = json.dumps(given, separators=(",", ":"), ensure_ascii=False)
    if len(written.encode()) > MAX_CUSTOM_BYTES:
        return [FieldError("customFields", f"must have at most {MAX_CUSTOM_BYTES} bytes as JSON")]
    return []


def _depth(value: Any) -> int:
    """Number of objects and lists around the innermost value."""
    depth, level = 0, [value]
    while nested := [item for item in level if isinstance(item, Mapping | list)]:
        depth += 1
        level = [inner for item in nested for inner in (item.values() if isinstance(item, Mapping) else item)]
    return depth


def folded(text: str) -> str:
    """Text without the differences that a search ignores: case, and how letters are composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def search_text(contact: Contact) -> str:
    """
    The text that a search looks at: number, e-mail and names, each on a line of its own.

    It is cut to fit into an index of PostgreSQL: this affects names of some hundred characters of twelve
    bytes each.
    """
    name = " ".join(part for part in (contact.first_name, contact.last_name) if part)
    whole = folded("\n".join((contact.phone_number, contact.email or "", name)))
    return whole.encode()[:_MAX_SEARCH_BYTES].decode(errors="ignore")


def wanted(search: str) -> tuple[str, ...]:
    """
    The texts of which one must occur in the search text of a contact to find it; none finds every contact.

    Spaces around it are ignored. Spaces and other separators within a number are removed, as in the numbers
    of contacts. A whole number in another writing is looked for in E.164 too.
    """
    text = " ".join(search.split())
    if not text:
        return ()
    typed = text.translate(SEPARATORS) if _TYPED_NUMBER.fullmatch(text) else folded(text)
    try:
        number = read_number(text)
    except ValueError:
        return (typed,)
    return (typed,) if typed in number else (typed, number)
