"""Time ranges in queries: dates and times, inclusive at the start."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from callcontrol.errors import FieldError, ValidationFailed

__all__ = ["time_span"]

_DATE_CHARS = len("YYYY-MM-DD")
_MICROSECOND = timedelta(microseconds=1)


def time_span(
    start_date: str | None,
    end_date: str | None,
    names: tuple[str, str] = ("start_date", "end_date"),
    *,
    inclusive: bool = False,
) -> tuple[datetime | None, datetime | None]:
    """
    Parse a range of two dates or times; a bare end date includes its whole day.

    The end is exclusive; with ``inclusive`` it is included, may equal the start, and is the last microsecond
    of a bare date. ``names`` are the names of the fields.

    Raises:
        ValidationFailed: A value is not a date or time, or the end is before the start.
    """
    errors: list[FieldError] = []
    start = _moment(names[0], start_date, errors, after_day=False)
    end = _moment(names[1], end_date, errors, after_day=True)
    if inclusive and end is not None and end_date is not None and len(end_date) == _DATE_CHARS:
        end -= _MICROSECOND
    if start and end and (start > end if inclusive else start >= end):
        must = "must not be before" if inclusive else "must be after"
        errors.append(FieldError(names[1], f"{must} {names[0]}"))
    if errors:
        raise ValidationFailed(errors)
    return start, end


def _moment(field: str, text: str | None, errors: list[FieldError], *, after_day: bool) -> datetime | None:
    if text is None:
        return None
    # An unescaped plus sign arrives as a space: 2026-01-01T00:00:00 05:30.
    text = text.replace(" ", "+")
    try:
        if len(text) == _DATE_CHARS:
            day = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
            return day + timedelta(days=1) if after_day else day
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    errors.append(FieldError(field, "must be YYYY-MM-DD or RFC 3339 with an offset, 2026-01-31T12:00:00Z"))
    return None
