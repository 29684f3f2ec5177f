"""
Log of a delivery's attempts: what is kept of a receiver's response, and for how many attempts.

The body of a response is a stranger's: its length is bounded, and it must not repeat what signed the request.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final
from urllib.parse import quote

from callcontrol.database.statements import clean, pack, to_micros, to_moment, unpack
from callcontrol.models import Attempt

MAX_BODY_BYTES: Final = 4096
"""Bytes that are kept of the body of the newest response."""
MAX_EARLIER_CHARS: Final = 256
"""Characters that are kept of the body of each earlier one."""
MAX_ATTEMPTS: Final = 8
"""Attempts that are kept."""

_SIGNATURES: Final = "-signature"
_PREFIX: Final = "whsec_"
_ESCAPED: Final = (
    str.maketrans({"/": "\\/"}),
    str.maketrans({"+": "\\u002B"}),
    str.maketrans({"+": "\\u002b", "=": "\\u003d", "/": "\\u002f"}),
    str.maketrans({"+": "&#43;", "=": "&#61;", "/": "&#47;"}),
)
"""Writings of JSON and HTML in which some libraries escape the characters of base64."""
_STORED: Final = frozenset(field.name for field in fields(Attempt))
_LEAST_SIGNATURE_CHARS: Final = 16
_CONTROLS: Final = bytes(set(range(0x20)) - set(b"\t\n\r")) + b"\x7f"


@dataclass(frozen=True, slots=True)
class Body:
    """Body of a response as it is kept: `text` is None if it is no text; see ``Attempt``."""

    text: str | None = ""
    length_bytes: int = 0
    is_whole: bool = True


def withheld_values(headers: Mapping[str, str], secrets: Iterable[str | None]) -> Sequence[bytes]:
    """
    Secrets, and the signatures among header fields, in the forms in which a receiver may repeat them.

    The longest come first, so that none is found within another.
    """
    plain = {secret for secret in secrets if secret}
    plain |= {secret.removeprefix(_PREFIX) for secret in plain} - {""}
    for name, value in headers.items():
        if name.lower().endswith(_SIGNATURES):
            words = (word for part in value.split() for word in part.split(","))
            bare = {word.partition("=")[2] if word.startswith(("sha256=", "v1=")) else word for word in words}
            plain |= {value, *(word for word in bare if len(word) >= _LEAST_SIGNATURE_CHARS)}
    odd = [text for text in plain if not text.isalnum()]
    forms = plain.union(*((quote(text, safe=""), *map(text.translate, _ESCAPED)) for text in odd))
    return sorted((form.encode() for form in forms), key=len, reverse=True)


def margin_bytes(withheld: Sequence[bytes]) -> int:
    """Bytes to read beyond the limit, so that a withheld value across it is found whole."""
    return len(withheld[0]) if withheld else 0


def kept_body(begin: bytes, length_bytes: int, withheld: Sequence[bytes], *, is_whole: bool) -> Body:
    """
    Return what is kept of a body.

    Args:
        begin: Its beginning, longer than ``MAX_BODY_BYTES`` by ``margin_bytes`` where there is more.
        length_bytes: Bytes that were read of it.
        withheld: Values that are replaced.
        is_whole: True if it was read to its end.
    """
    for value in withheld:
        # As long as before, so that the cut is behind no part of another one.
        begin = begin.replace(value, b"*" * len(value))
    kept = begin[:MAX_BODY_BYTES]
    is_whole = is_whole and length_bytes <= MAX_BODY_BYTES
    text = _text(kept, is_cut=not is_whole)
    return Body(text, length_bytes, is_whole)


def _text(body: bytes, *, is_cut: bool) -> str | None:
    """UTF-8 without control characters, or None; the last character of a cut one may be incomplete."""
    if body.translate(None, _CONTROLS) != body:
        return None
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        incomplete = is_cut and error.reason == "unexpected end of data"
        return body[: error.start].decode() if incomplete else None


def added(log: Sequence[Attempt], attempt: Attempt) -> Sequence[Attempt]:
    """Add an attempt to a log; the oldest one leaves a full log, and earlier bodies are shortened."""
    earlier = [_shortened(item) for item in log[-MAX_ATTEMPTS + 1 :]]
    return (*earlier, attempt)


def _shortened(attempt: Attempt) -> Attempt:
    if attempt.body is None or len(attempt.body) <= MAX_EARLIER_CHARS:
        return attempt
    return replace(attempt, body=attempt.body[:MAX_EARLIER_CHARS], is_whole=False)


def packed(log: Sequence[Attempt]) -> str | None:
    """Log as it is stored; None for an empty one."""
    if not log:
        return None
    return pack(
        [
            {
                "at": to_micros(attempt.at),
                "number": attempt.number,
                "took_ms": attempt.took_ms,
                "status": attempt.status,
                "problem": clean(attempt.problem),
                "body": attempt.body,
                "body_bytes": attempt.body_bytes,
                "is_whole": attempt.is_whole,
            }
            for attempt in log
        ]
    )


def unpacked(stored: str | None, attempts: int) -> Sequence[Attempt]:
    """
    Log of its stored form, of a delivery of so many attempts.

    Numbers beyond them are of a log that a node of an older version left at a replay.
    """
    rows = [] if stored is None else unpack(stored)
    # Stored without numbers, they were the newest.
    before = attempts - len(rows)
    log = (
        # A node of a newer version may have stored more of each.
        Attempt(
            **{"number": before + place, **{name: row[name] for name in row if name in _STORED}}
            | {"at": to_moment(row["at"])}
        )
        for place, row in enumerate(rows, 1)
    )
    return tuple(attempt for attempt in log if 0 < attempt.number <= attempts)
