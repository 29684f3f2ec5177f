"""Cursors: opaque text for a position in a list, which clients send back unchanged."""

from __future__ import annotations

import base64
import re

from callcontrol.errors import ValidationFailed
from callcontrol.models import Position

__all__ = ["MAX_CURSOR_CHARS", "read_cursor", "write_cursor"]

MAX_CURSOR_CHARS = 200
_FORM = re.compile(r"1:([0-9]{1,18}):([0-9a-z-]{1,64})")


def write_cursor(place: Position | None) -> str | None:
    """Encode a position as a cursor; None at the end of a list."""
    if place is None:
        return None
    text = f"1:{place.at_micros}:{place.identifier}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, identifier: str = "[0-9a-z-]+") -> Position | None:
    """
    Decode a cursor to its position; None without a cursor.

    Args:
        cursor: Text that a client sent back.
        identifier: Regular expression of the list's identifiers.

    Raises:
        ValidationFailed: ``write_cursor`` did not make it for a list with these identifiers.
    """
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except ValueError:
        text = ""
    found = _FORM.fullmatch(text)
    if found is None or re.fullmatch(identifier, found[2]) is None:
        raise ValidationFailed.of("cursor", "must be the next_cursor of an earlier page of this list")
    return Position(int(found[1]), found[2])
