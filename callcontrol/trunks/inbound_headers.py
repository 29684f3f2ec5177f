"""
Bounded header fields of an inbound INVITE: shown to the application, and forwarded by policy.

Nothing here is verified. A value that is too long or not printable is left out and never cut: half a
signature or half an address would be worse than none.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from callcontrol.trunks.caller_identity import Caller, privacy_of
from sip import Headers, NameAddr, ParseError

MAX_CUSTOM_HEADERS: Final = 32
"""Limit of X- header fields used per message."""

_MAX_VALUE_CHARS: Final = 1024
_MAX_IDENTITY_CHARS: Final = 4096  # a PASSporT with its certificate's address is 600 to 1000 characters
_MAX_ENTRIES: Final = 8
_MAX_SHOWN_CHARS: Final = 8192
_HEEDED: Final = frozenset({"diversion", "history-info", "user-to-user", "identity", "session-id", "privacy"})
_X_SIGNS: Final = ("X-", "x-")
_X_HEADER: Final = re.compile(r"X-[A-Za-z0-9-]{1,64}", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Received:
    """
    Bounded header fields of an INVITE.

    ``history`` has the History-Info entries (RFC 7044), ``diversions`` those of Diversion (RFC 5806), latest
    first; ``user_to_user`` is RFC 7433's, ``identity`` the signed PASSporTs of RFC 8224, unchanged.
    """

    custom: tuple[tuple[str, str], ...] = ()
    diversions: tuple[NameAddr, ...] = ()
    history: tuple[NameAddr, ...] = ()
    user_to_user: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    session_id: str | None = None
    privacy: tuple[str, ...] = ()

    @classmethod
    def of(cls, headers: Headers) -> "Received":
        """Read the header fields of an INVITE."""
        keys = [key for key, _, _ in headers.entries()]
        if _HEEDED.isdisjoint(keys) and "x-" not in [key[:2] for key in keys]:
            return _NOTHING  # most calls
        return cls(
            custom=custom_headers(headers.items()),
            diversions=tuple(_addresses(headers, "Diversion")),
            history=tuple(_addresses(headers, "History-Info")),
            user_to_user=user_to_user(headers),
            identity=tuple(_values(headers, "Identity", _MAX_IDENTITY_CHARS)),
            session_id=next(_values(headers, "Session-ID", 128), None),
            privacy=privacy_of(headers),
        )

    def shown(self, caller: Caller | None = None) -> dict[str, Any]:
        """
        Fields as the call object shows them, without empty ones.

        For a caller that withholds its number, the display name and the signed identity are left out.
        """
        hidden = caller is not None and caller.withheld
        facts: dict[str, Any] = {
            "headers": dict(self.custom),
            "display_name": caller.name if caller is not None and not hidden else None,
            "privacy": list(self.privacy),
            "diversion": [str(address) for address in self.diversions],
            "history_info": [str(address) for address in self.history],
            "user_to_user": list(self.user_to_user),
            "session_id": self.session_id,
            "identity": [] if hidden else list(self.identity),
        }
        return _bounded({name: value for name, value in facts.items() if value})


_NOTHING: Final = Received()


def custom_headers(fields: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """X- header fields that may be copied into another message: bounded, printable, first of each name."""
    found: dict[str, tuple[str, str]] = {}
    for name, value in fields:
        if name[:2] not in _X_SIGNS:  # most header fields
            continue
        if len(found) >= MAX_CUSTOM_HEADERS:
            break
        if _X_HEADER.fullmatch(name) and _is_safe(value, _MAX_VALUE_CHARS):
            found.setdefault(name.lower(), (name, value))
    return tuple(found.values())


def user_to_user(headers: Headers) -> tuple[str, ...]:
    """User-to-User values of a message (RFC 7433)."""
    return tuple(_values(headers, "User-to-User", _MAX_VALUE_CHARS))


def _values(headers: Headers, name: str, limit_chars: int) -> Iterator[str]:
    for value in headers.get_all(name)[:_MAX_ENTRIES]:
        if _is_safe(value, limit_chars):
            yield value


def _addresses(headers: Headers, name: str) -> Iterator[NameAddr]:
    for value in _values(headers, name, _MAX_VALUE_CHARS):
        try:
            yield NameAddr.parse(value)
        except ParseError:
            continue


def _is_safe(value: str, limit_chars: int) -> bool:
    """Return True for a value that a header field can hold: no line end, no control, no lone surrogate."""
    return 0 < len(value) <= limit_chars and value.isprintable()


def _bounded(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that fit within ``_MAX_SHOWN_CHARS`` together, in order."""
    kept: dict[str, Any] = {}
    left = _MAX_SHOWN_CHARS
    for name, value in facts.items():
        left -= len(str(value))
        if left >= 0:
            kept[name] = value
        else:
            left += len(str(value))
    return kept
