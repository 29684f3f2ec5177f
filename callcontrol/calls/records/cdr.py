"""Call logs: calls as operators of trunks see them."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from callcontrol.clock import MILLISECOND
from callcontrol.e164 import SEPARATORS, read_number
from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.models import Direction

MAX_SPAN: Final = timedelta(days=31)
"""Longest time span of a list of call logs, so that no list reads more than a month of calls."""
DEFAULT_SPAN: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class CdrFilter:
    """
    Filter of a list of call logs; ``start`` is inclusive, ``end`` exclusive.

    ``text`` is searched for anywhere in the numbers and the Call-ID; ``searched`` lists its writings.
    """

    start: datetime
    end: datetime
    direction: Direction | None = None
    answered: bool | None = None
    carrier_sid: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Cdr:
    """
    One call of a trunk.

    ``trunk`` is the name of its carrier, ``remote_host`` the host of its gateway, ``host`` the process that
    ran it; a call that never reached a gateway has neither carrier nor gateway.
    """

    call_sid: str
    from_: str
    to: str
    direction: Direction
    status: str
    carrier_sid: str | None
    gateway_sid: str | None
    app_sid: str | None
    sip_status: int | None
    sip_reason: str | None
    sip_call_id: str | None
    duration_sec: int | None
    attempted_at: datetime
    answered_at: datetime | None
    terminated_at: datetime | None
    termination_reason: str | None
    terminated_by: str | None
    host: str
    remote_host: str | None
    trunk: str | None
    codec: str | None = None
    mos: float | None = None
    jitter_ms: float | None = None
    packet_loss_pct: float | None = None


def searched(text: str) -> tuple[str, ...]:
    """
    Texts of which one must occur in a call log that a text finds.

    The text itself, as a Call-ID has it; and as numbers are recorded: without separators if it may be part of
    a number, and in E.164 if it is a whole one.
    """
    found = [text]
    digits = text.translate(SEPARATORS)
    if digits.removeprefix("+").isdecimal():
        found.append(digits)
    with suppress(ValueError):
        found.append(read_number(text))
    return tuple(dict.fromkeys(found))


def span_of(
    now: datetime, days: int | None, start: datetime | None, end: datetime | None
) -> tuple[datetime, datetime]:
    """
    Return the time span of a list: the last ``days``, or ``start`` to ``end``; 30 days by default.

    ``end`` is the first moment behind the span. The last days are counted from the full minute, so that all
    pages of a list have the same span.

    Raises:
        ValidationFailed: Both are given, the span is longer than ``MAX_SPAN``, or it is empty.
    """
    if days is not None and (start is not None or end is not None):
        raise ValidationFailed.of("days", "cannot be combined with start and end; leave one of them out")
    end = end or now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    try:
        start = start or end - (timedelta(days=days) if days is not None else DEFAULT_SPAN)
    except OverflowError:
        raise ValidationFailed.of("end", "is too long ago") from None
    # A span from one time to the same time of another day includes both.
    if end - MILLISECOND - start > MAX_SPAN:
        message = f"must be at most {MAX_SPAN.days} days before end, whose whole day counts if it is a date"
        raise ValidationFailed([FieldError("start", message)])
    if start >= end:
        raise ValidationFailed([FieldError("end", "must not be before start; without end it is now")])
    return start, end
