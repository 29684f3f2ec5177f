"""Field types shared by several schemas."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from api.http.cursor import MAX_CURSOR_CHARS, read_cursor
from api.http.time_ranges import span_errors
from api.schemas.base import RequestModel
from callcontrol.e164 import MAX_NUMBER_CHARS, read_number
from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.models import Position
from callcontrol.numbers.binding import UUID

__all__ = [
    "E164",
    "MAX_PAGE",
    "Cursor",
    "Day",
    "Digits",
    "EndDate",
    "Filled",
    "Id",
    "Language",
    "Name",
    "Page",
    "PerPage",
    "PeriodRequest",
    "QueryNumber",
    "QueryText",
    "StartDate",
    "Timestamp",
    "CursorQuery",
    "with_plus",
]

MAX_PAGE = 1_000_000

_DIGITS = re.compile(r"[0-9A-D*#wW]{1,64}")


def _digits(digits: str) -> str:
    if _DIGITS.fullmatch(digits) is None:
        raise ValueError("must be 1 to 64 of 0-9, *, #, A-D, w (half a second) and W (a second)")
    return digits


Digits = Annotated[str, AfterValidator(_digits), Field(json_schema_extra={"pattern": "^[0-9A-D*#wW]{1,64}$"})]


def _uuid(text: str) -> str:
    if UUID.fullmatch(text) is None:
        raise ValueError("must be a UUID")
    return text.lower()


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


_LANGUAGE = r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}"


def _language(tag: str) -> str:
    if re.fullmatch(_LANGUAGE, tag) is None:
        raise ValueError("must be a language such as en-IN or hi")
    return tag


Language = Annotated[str, AfterValidator(_language), Field(json_schema_extra={"pattern": f"^{_LANGUAGE}$"})]
"""Tag of a language, with any script and region (RFC 5646)."""

Filled = Annotated[str, Field(min_length=1, json_schema_extra={"pattern": r"\S"}), AfterValidator(_filled)]
"""A text of more than spaces."""


def with_plus(text: str) -> str:
    """Restore a leading plus sign, which arrives as a space from a query that does not escape it."""
    return "+" + text[1:] if text.startswith(" ") else text


def _query_number(text: str) -> str:
    return read_number(with_plus(text))


# A pattern of all writings could not be read; the examples show them.
_WRITING = Field(
    max_length=MAX_NUMBER_CHARS,
    description="A telephone number, in any common writing.",
    examples=["+918047491899", "918047491899", "080 4749 1899"],
)
E164 = Annotated[str, _WRITING, AfterValidator(read_number)]
QueryNumber = Annotated[str, _WRITING, AfterValidator(_query_number)]
QueryText = Annotated[str, Field(max_length=256), AfterValidator(with_plus)]
Id = Annotated[str, Field(max_length=64, json_schema_extra={"format": "uuid"}), AfterValidator(_uuid)]
Name = Annotated[str, Field(min_length=1, max_length=128)]
Page = Annotated[int, Field(ge=1, le=MAX_PAGE)]
PerPage = Annotated[int, Field(ge=1, le=100)]
Cursor = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_CURSOR_CHARS,
        description="next_cursor of the previous page; replaces page.",
    ),
]
_DATE_OR_MOMENT: dict[str, Any] = {"anyOf": [{"format": "date"}, {"format": "date-time"}]}
StartDate = Annotated[
    str,
    Field(description="RFC 3339, or YYYY-MM-DD (UTC); inclusive.", json_schema_extra=_DATE_OR_MOMENT),
]
EndDate = Annotated[
    str,
    Field(description="RFC 3339, or YYYY-MM-DD (UTC); inclusive.", json_schema_extra=_DATE_OR_MOMENT),
]
Day = Annotated[str, Field(description="YYYY-MM-DD (UTC), inclusive.", json_schema_extra={"format": "date"})]
Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class CursorQuery(RequestModel):
    """A query of a list that is read by page or by cursor."""

    #: Name of the list in its cursors, and regular expression of its identifiers.
    listed: ClassVar[tuple[str, str]]

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse page and cursor together, and a cursor of another list."""
        errors = super().cross_check(given)
        if "cursor" not in given:
            return errors
        if "page" in given:
            errors.append(FieldError("page", "cannot be combined with cursor; leave one of them out"))
        try:
            cls.place(given["cursor"])
        except ValidationFailed as refusal:
            errors += refusal.errors
        return errors

    @classmethod
    def place(cls, cursor: str | None) -> Position | None:
        """
        Decode a cursor of this list to its position; None without a cursor.

        Raises:
            ValidationFailed: It is no cursor of this list.
        """
        return read_cursor(cls.listed[0], cursor, cls.listed[1])


class PeriodRequest(RequestModel):
    """A request about a period of dates or times."""

    #: Names of the fields that are its start and its end.
    period: ClassVar[tuple[str, str]] = ("start_date", "end_date")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse what is no date or time, and an end before the start."""
        start, end = (given.get(name) for name in cls.period)
        return super().cross_check(given) + span_errors(start, end, cls.period)
