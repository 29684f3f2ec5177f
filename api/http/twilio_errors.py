"""
Error codes of Twilio's interface.

A refusal that has one cause with a code of its own has that; any other has 20000 plus the status, with
exceptions. The status is that of the platform API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from callcontrol import errors as domain

__all__ = ["CLASS_CODES", "code_of", "codes_of_fields", "twilio_code"]

_STATUS_CODES: Final[Mapping[int, int]] = {400: 20001, 401: 20003, 405: 20004}

CLASS_CODES: Final[Mapping[type[domain.DomainError], int]] = {
    domain.NumberNotOwned: 21210,
    domain.WrongCallState: 21220,
}
"""Codes of errors that are a cause themselves."""

# By the parameter that alone is missing or wrong.
_FIELD_CODES: Final[Mapping[str, tuple[int, str]]] = {
    "To": (21211, "`To` is missing or wrong."),
    "From": (21212, "`From` is missing or wrong."),
    "Url": (21205, "`Url` is missing or wrong."),
    "MediaUrl": (21620, "`MediaUrl` is wrong."),
}
# By the reason, of the parameter that has it.
_REASON_CODES: Final[Mapping[str, tuple[str, int, str]]] = {
    domain.NO_ROUTE: ("To", 21214, "No carrier serves `To`."),
    domain.OPTED_OUT: ("To", 21610, "The recipient wants no messages."),
}


def twilio_code(status: int) -> int:
    """Error code of a status."""
    return _STATUS_CODES.get(status, 20_000 + status)


def code_of(error: domain.DomainError, status: int) -> int:
    """Error code of a refusal with this status."""
    if isinstance(error, domain.ValidationFailed):
        causes = {(item.field, item.reason) for item in error.errors}
        if len(causes) != 1:
            return twilio_code(status)
        name, reason = causes.pop()
        if reason is not None and reason in _REASON_CODES:
            return _REASON_CODES[reason][1]
        return _FIELD_CODES[name][0] if name in _FIELD_CODES else twilio_code(status)
    return CLASS_CODES.get(type(error)) or twilio_code(status)


def codes_of_fields(names: Iterable[str]) -> dict[str, str]:
    """Codes, with their meaning, of single causes among the parameters of an endpoint; the status is 400."""
    known = set(names)
    codes = {code: text for name, (code, text) in _FIELD_CODES.items() if name in known}
    codes |= {code: text for name, code, text in _REASON_CODES.values() if name in known}
    return {str(code): text for code, text in codes.items()}
