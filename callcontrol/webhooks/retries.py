"""Sans-I/O rules of webhook delivery: retry schedule, meaning of responses."""

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

OFFSETS_S: Final = (0.0, 5.0, 30.0, 120.0, 600.0, 3600.0, 21_600.0, 86_400.0)
"""Attempt times in seconds from the first attempt; after the last one the delivery has failed."""

TIMEOUT_S: Final = 10.0
"""Response time limit of a receiver, in seconds."""

_MAX_RETRY_AFTER_S: Final = 86_400.0
_JITTER: Final = 0.2


def retry_delay_s(
    attempts: int,
    *,
    jitter: float,
    retry_after_s: float | None = None,
    offsets_s: Sequence[float] = OFFSETS_S,
) -> float | None:
    """
    Delay in seconds after the given number of failed attempts; None if it was the last attempt.

    Args:
        attempts: Attempts made so far, at least 1.
        jitter: A random number from 0 to 1; it spreads the delay over 20 % either way, so that
            simultaneous failures are not all retried at once.
        retry_after_s: Retry-After of the receiver; honoured up to a day, never shortened by the schedule.
        offsets_s: The schedule.
    """
    if attempts >= len(offsets_s):
        return None
    delay_s = offsets_s[attempts] - offsets_s[attempts - 1]
    delay_s *= 1.0 - _JITTER + 2.0 * _JITTER * jitter
    if retry_after_s is not None:
        delay_s = max(delay_s, min(retry_after_s, _MAX_RETRY_AFTER_S))
    return delay_s


def retry_after_s(value: str | None, date: str | None, now: datetime) -> float | None:
    """
    Parse ``Retry-After`` to seconds; None if it is absent or invalid.

    A date is counted from the response's own ``Date``, if it has one, so that a receiver's wrong clock does
    no harm.

    Source: RFC 9110 10.2.3.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdecimal():
        return float(value) if len(value) <= 9 else _MAX_RETRY_AFTER_S
    until = _moment(value)
    if until is None:
        return None
    return max(0.0, (until - (_moment(date or "") or now)).total_seconds())


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def is_gone(status: int) -> bool:
    """Return True if the status means that the URL never wants another event (410)."""
    return status == 410


@lru_cache(1024)
def origin(url: str) -> str:
    """Normalized scheme, host and port of a URL; the text itself if it is not a URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return url
    return f"{parts.scheme}://{(parts.hostname or '').rstrip('.')}:{port}"
