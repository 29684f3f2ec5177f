"""Time ranges in requests: dates and times, both ends included."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from callcontrol.clock import MILLISECOND, to_millisecond
from callcontrol.errors import FieldError, ValidationFailed

__all__ = ["span_errors", "time_span"]

# Python also reads weeks, commas and offsets without a colon, which RFC 3339 has not.
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(
    rf"{_DATE.pattern}[T+][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,9}})?(Z|[+-][0-9]{{2}}:[0-9]{{2}})"
)
_DAY = timedelta(days=1)
_FORMAT = "must be YYYY-MM-DD or RFC 3339 with an offset, 2026-01-31T12:00:00Z"


def time_span(
    start_date: str | None, end_date: str | None, names: tuple[str, str] = ("start_date", "end_date")
) -> tuple[datetime | None, datetime | None]:
    """
    Parse a range of two dates or times, both included.

    Returns the start, and the first moment behind the end: the next day of a date, the next millisecond of a
    time. Times are shown to the millisecond and stored more precisely, so a time stands for its millisecond.
    ``names`` are the names of the fields.

    Raises:
        ValidationFailed: A value is no date or time of the calendar, or the end is before the start.
    """
    errors: list[FieldError] = []
    start = _moment(names[0], start_date, errors, is_end=False)
    end = _moment(names[1], end_date, errors, is_end=True)
    if start and end and start >= end:
        errors.append(FieldError(names[1], f"must not be before {names[0]}"))
    if errors:
        raise ValidationFailed(errors)
    return start, end


def span_errors(start_date: object, end_date: object, names: tuple[str, str]) -> list[FieldError]:
    """
    List what `time_span` would refuse in two values.

    Values that are no texts are passed over: their types are wrong.
    """
    start, end = (value if isinstance(value, str) else None for value in (start_date, end_date))
    try:
        time_span(start, end, names)
    except ValidationFailed as refusal:
        return list(refusal.errors)
    return []


def _moment(field: str, text: str | None, errors: list[FieldError], *, is_end: bool) -> datetime | None:
    if text is None:
        return None
    # An unescaped plus sign arrives as a space: 2026-01-01T00:00:00 05:30.
    text = text.replace(" ", "+").upper()
    try:
        if _DATE.fullmatch(text):
            moment, length = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC), _DAY
        elif _TIME.fullmatch(text):
            # T and Z may be written small, and a space in place of T (RFC 3339 5.6).
            moment = to_millisecond(datetime.fromisoformat(text).astimezone(UTC))
            length = MILLISECOND
        else:
            raise ValueError(text)
        return moment + length if is_end else moment
    except OverflowError:
        errors.append(FieldError(field, "is beyond the calendar, which has the years 1 to 9999"))
    except ValueError:
        errors.append(FieldError(field, _FORMAT))
    return None
