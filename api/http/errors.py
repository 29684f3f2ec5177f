"""
Errors over HTTP: status and code of every domain error, and the errors of the HTTP layer itself.

Every error response has the body ``{"error": {"code", "message", "details"?}}``. The number wiring
endpoints spell the codes of their own work in lower case; refusals before that work (key, scope, request
rate) keep the general code there. Masking spells all codes in lower case, and webhook subscriptions answer
``{"error": "text"}`` for every error. The endpoints for Twilio's clients answer
``{"code", "message", "more_info", "status", "details"?}`` with numeric codes. Messaging answers
``{"success": false, "error", "code", "message", "details"?}`` with the general codes. The endpoints for
jambonz's clients answer ``{"msg", "code", "details"?}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from http import HTTPStatus
from typing import Any

from api.http.twilio_errors import CLASS_CODES, code_of, twilio_code
from callcontrol import errors as domain

__all__ = [
    "HTTP_STATUS",
    "WIRING_CODES",
    "ApiError",
    "ErrorStyle",
    "masking_code",
    "status_of",
    "to_api_error",
    "unexpected",
]


class ErrorStyle(Enum):
    """Format of an endpoint's error responses and codes."""

    GENERAL = "general"
    WIRING = "wiring"
    MASKING = "masking"
    PLAIN = "plain"
    TWILIO = "twilio"
    MESSAGING = "messaging"
    JAMBONZ = "jambonz"


HTTP_STATUS: Mapping[type[domain.DomainError], int] = {
    domain.InvalidNumbers: 400,
    domain.ValidationFailed: 400,
    domain.BindFailed: 400,
    domain.Unauthorized: 401,
    domain.InsufficientBalance: 402,
    domain.SpendLimitReached: 402,
    domain.Forbidden: 403,
    domain.DestinationForbidden: 403,
    domain.KycRequired: 403,
    domain.NumberNotOwned: 403,
    domain.NotFound: 404,
    domain.NumberTaken: 409,
    domain.QuoteStale: 409,
    domain.CallEnded: 409,
    domain.Conflict: 409,
    domain.WrongCallState: 409,
    # The messaging specification lists 400 alone for these.
    domain.AlreadyExists: 400,
    domain.IdempotencyConflict: 409,
    domain.InboundBound: 409,
    domain.InboundConflict: 409,
    domain.ChannelNotConfigured: 400,
    domain.ProviderRejected: 400,
    domain.RateLimited: 429,
    domain.Internal: 500,
    domain.SendFailed: 502,
    domain.ToolFailed: 502,
    domain.NotConfigured: 503,
    domain.ServiceUnavailable: 503,
    domain.NodeUnreachable: 503,
    domain.OutcomeUnknown: 503,
    domain.ToolTimedOut: 504,
}

# Codes that differ from the general table. A number of another account is `not_found` here, so the 403 of
# the general table does not occur; a forbidden destination is a rejected binding.
WIRING_CODES: Mapping[type[domain.DomainError], tuple[int, str]] = {
    domain.ValidationFailed: (400, "validation"),
    domain.DestinationForbidden: (400, "bind_failed"),
    domain.Forbidden: (404, "not_found"),
    domain.NotFound: (404, "not_found"),
    domain.Conflict: (409, "conflict"),
    domain.Internal: (500, "internal_error"),
    domain.ServiceUnavailable: (503, "not_configured"),
}

# Clients of Twilio and of jambonz expect 404 for a call that has ended.
_ENDED_STATUS: Mapping[type[domain.DomainError], int] = {domain.CallEnded: 404}
# Twilio's clients show this address beside the message.
_TWILIO_MORE_INFO = "https://www.twilio.com/docs/errors/{code}"

# Masking codes that are not the general code in lower case.
_MASKING_CODES: Mapping[str, str] = {
    "VALIDATION_ERROR": "validation",
    "SPEND_LIMIT_EXCEEDED": "insufficient_balance",
}


class ApiError(Exception):
    """An error response, ready to send."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        style: ErrorStyle = ErrorStyle.GENERAL,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = dict(details or {})
        self.headers = dict(headers or {})
        self.style = style

    def body(self) -> dict[str, Any]:
        """The error envelope."""
        if self.style is ErrorStyle.PLAIN:
            return {"error": self.message}
        if self.style is ErrorStyle.TWILIO:
            # What the HTTP layer itself refuses has a code of the general table.
            code = int(self.code) if self.code.isdecimal() else twilio_code(self.status)
            more = {"details": self.details} if self.details else {}
            more_info = _TWILIO_MORE_INFO.format(code=code)
            return {
                "code": code,
                "message": self.message,
                "more_info": more_info,
                "status": self.status,
                **more,
            }
        if self.style is ErrorStyle.JAMBONZ:
            more = {"details": self.details} if self.details else {}
            return {"msg": self.message, "code": self.code, **more}
        if self.style is ErrorStyle.MESSAGING:
            # Messaging clients expect a text in `error`; they branch on `code`.
            more = {"details": self.details} if self.details else {}
            phrase = HTTPStatus(self.status).phrase
            return {"success": False, "error": phrase, "code": self.code, "message": self.message, **more}
        spelled = masking_code(self.code) if self.style is ErrorStyle.MASKING else self.code
        error: dict[str, Any] = {"code": spelled, "message": self.message}
        if self.details:
            error["details"] = self.details
        return {"error": error}


def masking_code(code: str) -> str:
    """Masking's spelling of a general code."""
    return _MASKING_CODES.get(code, code.lower())


def status_of(error: type[domain.DomainError], style: ErrorStyle = ErrorStyle.GENERAL) -> tuple[int, str]:
    """
    HTTP status and code of a class of domain errors.

    A class that is not listed gets those of its nearest listed ancestor, or else of `Internal`.
    """
    if style is ErrorStyle.TWILIO:
        status = _ENDED_STATUS.get(error) or status_of(error)[0]
        return status, str(CLASS_CODES.get(error) or twilio_code(status))
    if style is ErrorStyle.JAMBONZ and error in _ENDED_STATUS:
        return _ENDED_STATUS[error], error.code
    for ancestor in error.__mro__:
        if style is ErrorStyle.WIRING and ancestor in WIRING_CODES:
            return WIRING_CODES[ancestor]
        if ancestor in HTTP_STATUS:
            code = masking_code(error.code) if style is ErrorStyle.MASKING else error.code
            return HTTP_STATUS[ancestor], code
    lower_case = style in (ErrorStyle.WIRING, ErrorStyle.MASKING)
    return 500, "internal_error" if lower_case else domain.Internal.code


def to_api_error(error: domain.DomainError, style: ErrorStyle = ErrorStyle.GENERAL) -> ApiError:
    """Convert a domain error to an error response."""
    status, code = status_of(type(error), style)
    if style is ErrorStyle.TWILIO:
        code = str(code_of(error, status))
    message, headers = error.message, dict[str, str]()
    if style is ErrorStyle.PLAIN and isinstance(error, domain.ValidationFailed):
        message = domain.describe(error.errors)  # This style has no details, so the message names the fields.
    if isinstance(error, domain.RateLimited | domain.ServiceUnavailable):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    if status == 401:
        basic = ', Basic realm="trunkline"' if style is ErrorStyle.TWILIO else ""
        headers["WWW-Authenticate"] = f'Bearer realm="trunkline"{basic}'
    return ApiError(status, code, message, details=error.details, headers=headers, style=style)


def unexpected(error: Exception, style: ErrorStyle = ErrorStyle.GENERAL) -> ApiError:
    """Make the response to an unexpected failure; `error` is kept as its cause for the log."""
    code = "internal_error" if style is ErrorStyle.WIRING else "INTERNAL_ERROR"
    message = "Unexpected server error; retry with backoff, and report the X-Request-Id if it persists."
    failure = ApiError(500, code, message, style=style)
    failure.__cause__ = error
    return failure
