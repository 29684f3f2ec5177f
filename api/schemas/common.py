"""Types of fields that several schemas share."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

__all__ = ["MAX_PAGE", "Digits", "Name", "Page", "PerPage", "QueryNumber", "Timestamp"]

MAX_PAGE = 1_000_000

_DIGITS = re.compile(r"[0-9A-D*#wW]{1,64}")


def _digits(digits: str) -> str:
    if _DIGITS.fullmatch(digits) is None:
        raise ValueError("must be 1 to 64 of 0-9, *, #, A-D, w (half a second) and W (a second)")
    return digits


Digits = Annotated[str, AfterValidator(_digits), Field(json_schema_extra={"pattern": "^[0-9A-D*#wW]{1,64}$"})]


def _with_plus(text: str) -> str:
    return "+" + text[1:] if text.startswith(" ") else text


# A number in a query: the plus sign of E.164 arrives as a space when it was not escaped.
QueryNumber = Annotated[str, Field(max_length=256), AfterValidator(_with_plus)]
Name = Annotated[str, Field(min_length=1, max_length=128)]
Page = Annotated[int, Field(ge=1, le=MAX_PAGE)]
PerPage = Annotated[int, Field(ge=1, le=100)]
Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
