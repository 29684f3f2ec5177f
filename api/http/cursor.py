"""Cursors: opaque text for a position in a list, which clients send back unchanged."""

from __future__ import annotations

import base64
import hashlib
import re

from callcontrol.errors import ValidationFailed
from callcontrol.models import Position

__all__ = ["MAX_CURSOR_CHARS", "read_cursor", "write_cursor"]

MAX_CURSOR_CHARS = 200
_FORM = re.compile(r"2:([0-9]{1,18}):([0-9a-z-]{1,64}):[0-9a-f]{8}")


def write_cursor(listed: str, place: Position | None) -> str | None:
    """
    Encode a position in a list as a cursor; None at its end.

    The check behind the position includes the list's name, ``listed``: a cursor of another list, or one that
    was cut on its way, would be a wrong position silently. Who makes one up only skips entries of the own
    account, so the check needs no key.
    """
    if place is None:
        return None
    text = f"2:{place.at_micros}:{place.identifier}"
    text += ":" + hashlib.sha256(f"{listed}:{text}".encode()).hexdigest()[:8]
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(listed: str, cursor: str | None, identifier: str = "[0-9a-z-]+") -> Position | None:
    """
    Decode a cursor to its position; None without a cursor.

    Args:
        listed: Name of the list.
        cursor: Text that a client sent back.
        identifier: Regular expression of the list's identifiers.

    Raises:
        ValidationFailed: ``write_cursor`` did not make it for this list.
    """
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except ValueError:
        text = ""
    found = _FORM.fullmatch(text)
    if found is not None and re.fullmatch(identifier, found[2]):
        place = Position(int(found[1]), found[2])
        if write_cursor(listed, place) == cursor:
            return place
    raise ValidationFailed.of("cursor", "must be the next_cursor of an earlier page of this list")
