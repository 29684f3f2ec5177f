"""Cursors: a place in a list as text that clients hand back without looking into it."""

from __future__ import annotations

import base64
import re

from callcontrol.errors import ValidationFailed
from callcontrol.models import Position

__all__ = ["MAX_CURSOR_CHARS", "read_cursor", "write_cursor"]

MAX_CURSOR_CHARS = 200
_FORM = re.compile(r"1:([0-9]{1,18}):([0-9a-z-]{1,64})")


def write_cursor(place: Position | None) -> str | None:
    """The cursor of a place; None where a list ends."""
    if place is None:
        return None
    text = f"1:{place.at_micros}:{place.identifier}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, identifier: str = "[0-9a-z-]+") -> Position | None:
    """
    The place of a cursor; None without one.

    Args:
        cursor: What a client handed back.
        identifier: What identifiers of the list look like, as a regular expression.

    Raises:
        ValidationFailed: It was not made by ``write_cursor`` for such a list.
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
