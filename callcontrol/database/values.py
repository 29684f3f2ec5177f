"""How values of the domain look in a row: timestamps, structured values and text from outside."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Microseconds since the epoch; ``moment`` must be aware."""
    return (moment - _EPOCH) // _MICROSECOND


def to_micros_or_none(moment: datetime | None) -> int | None:
    """The same, and None for None."""
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def to_moment(micros: int) -> datetime:
    """The aware UTC datetime of a stored timestamp."""
    return _EPOCH + timedelta(microseconds=micros)


def to_moment_or_none(micros: int | None) -> datetime | None:
    """The same, and None for None."""
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


def pack(value: Any) -> str:
    """A structured value as compact JSON text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def unpack(text: str) -> Any:
    """What ``pack`` was given."""
    return json.loads(text)


def clean(text: str | None) -> str | None:
    """
    Text from outside, made storable.

    PostgreSQL refuses NUL in text, and lone surrogates cannot be encoded at all; a hostile reason phrase
    must not keep a call's record from being written.
    """
    if text is None or text.isascii():
        return text if text is None or "\0" not in text else text.replace("\0", "")
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
