"""Parts that resources of Twilio's interface have in common."""

from __future__ import annotations

from datetime import datetime
from email.utils import format_datetime
from typing import Any

from api.http.cursor import read_cursor
from api.http.time_ranges import time_span
from api.schemas.twilio_api.base import API_VERSION
from callcontrol.errors import ValidationFailed
from callcontrol.models import Position

__all__ = ["ACCOUNT", "moment", "numbered", "position", "times"]

ACCOUNT = f"/{API_VERSION}/Accounts/{{sid}}"


def moment(at: datetime | None) -> str | None:
    """Time as in mail (RFC 5322); None of none."""
    return format_datetime(at) if at is not None else None


def numbered(page: dict[str, Any], items: str) -> dict[str, Any]:
    """Add the numbers of its first and last item to a page; `items` is the name of their list."""
    start = page["page"] * page["page_size"]
    return {**page, "start": start, "end": start + max(0, len(page[items]) - 1)}


def position(listed: str, token: str | None) -> Position | None:
    """
    Position in a list that a PageToken names; None without one.

    Raises:
        ValidationFailed: It is none of this list.
    """
    try:
        return read_cursor(listed, token)
    except ValidationFailed:
        raise ValidationFailed.of("PageToken", "must be of the next_page_uri of an earlier page") from None


def times(
    on: str | None, after: str | None, before: str | None, name: str
) -> tuple[datetime | None, datetime | None]:
    """
    Start and end, which is exclusive, of a filter by time; `name` is that of its parameter.

    Raises:
        ValidationFailed: A value is no date or time, or a day is given beside a range.
    """
    if on is not None and (before is not None or after is not None):
        raise ValidationFailed.of(name, f"cannot be combined with {name}< or {name}>")
    if on is not None:
        start, _ = time_span(on, None, (name, name))
        return start, time_span(None, on, (name, name))[1]
    return time_span(after, before, (f"{name}>", f"{name}<"))
