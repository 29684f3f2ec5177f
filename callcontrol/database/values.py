"""Conversion of domain values to rows: timestamps, structured values and external text."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Microseconds since the epoch; ``moment`` must be aware."""
    return (moment - _EPOCH) // _MICROSECOND


def to_micros_or_none(moment: datetime | None) -> int | None:
    """``to_micros``, with None for None."""
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def to_moment(micros: int) -> datetime:
    """Aware UTC datetime of a stored timestamp."""
    return _EPOCH + timedelta(microseconds=micros)


def to_moment_or_none(micros: int | None) -> datetime | None:
    """``to_moment``, with None for None."""
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


def pack(value: Any) -> str:
    """Serialize a structured value as compact JSON text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def unpack(text: str) -> Any:
    """Parse the result of ``pack``."""
    return json.loads(text)


def clean(text: str | None) -> str | None:
    """
    Make external text storable: remove NUL and replace lone surrogates.

    PostgreSQL rejects NUL in text, and lone surrogates cannot be encoded; a hostile reason phrase must not
    block the writing of a call's record.
    """
    if text is None or text.isascii():
        return text if text is None or "\0" not in text else text.replace("\0", "")
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
