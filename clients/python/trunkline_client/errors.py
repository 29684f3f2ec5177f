"""
Errors of the client.

::

    TrunklineError
    ├── ConnectionFailed         the server was not reached, or did not answer in time
    ├── ResponseInvalid          what it answered is not what the API describes
    ├── WebhookInvalid           a webhook that the server did not sign, or that is too old
    └── ApiError                 the server refused the request
        ├── BadRequest           400, and any other 4xx: the request itself is wrong
        ├── Unauthorized         401
        ├── PaymentRequired      402
        ├── Forbidden            403
        ├── NotFound             404
        ├── Conflict             409
        ├── RateLimited          429
        └── ServerError          5xx
"""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "ApiError",
    "BadRequest",
    "Conflict",
    "ConnectionFailed",
    "FieldError",
    "Forbidden",
    "NotFound",
    "PaymentRequired",
    "RateLimited",
    "ResponseInvalid",
    "ServerError",
    "TrunklineError",
    "Unauthorized",
    "WebhookInvalid",
    "error_of",
    "retry_after_s",
]


class TrunklineError(Exception):
    """Any error of this package."""


class ConnectionFailed(TrunklineError):
    """The server could not be reached, or did not answer in time."""


class ResponseInvalid(TrunklineError):
    """The response is not what the API describes: another server, or one of another version."""


class WebhookInvalid(TrunklineError):
    """The signature is missing or wrong, or the event is too old."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """A wrong field of a request by its path, and a word for the cause where there is one."""

    field: str
    message: str
    reason: str | None = None


class ApiError(TrunklineError):
    """
    The server refused the request.

    Branch on the class, on `status` and on `code`; `message` is a text for people. `fields` are the wrong
    fields, `details` all that the server told, and `request_id` is to be quoted in reports.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {message}" + (f" ({request_id})" if request_id else ""))
        self.status = status
        self.code = code
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        self.request_id = request_id
        self.retry_after_s = retry_after_s

    @property
    def fields(self) -> tuple[FieldError, ...]:
        """The wrong fields of the request."""
        listed = self.details.get("errors")
        return tuple(
            FieldError(str(item.get("field")), str(item.get("message")), item.get("reason"))
            for item in (listed if isinstance(listed, list) else ())
            if isinstance(item, dict)
        )


class BadRequest(ApiError):
    """The request itself is wrong; see `fields`."""


class Unauthorized(ApiError):
    """The key is missing, unknown or revoked."""


class PaymentRequired(ApiError):
    """The wallet cannot pay, or a spending limit is reached."""


class Forbidden(ApiError):
    """The key lacks a scope, or the resource is another account's."""


class NotFound(ApiError):
    """There is no such resource."""


class Conflict(ApiError):
    """The state of the resource does not allow the request."""


class RateLimited(ApiError):
    """Too many requests; `retry_after_s` tells how long to wait."""


class ServerError(ApiError):
    """The server failed, or cannot do it now."""


_CLASSES: Final[Mapping[int, type[ApiError]]] = {
    401: Unauthorized,
    402: PaymentRequired,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: RateLimited,
}


def error_of(status: int, content: Any, headers: Mapping[str, str]) -> ApiError:
    """Return the error of a refusal, whichever of the API's forms it has."""
    found = content if isinstance(content, dict) else {}
    error = found.get("error")
    # Messaging has a text in `error`, and webhook subscriptions nothing else.
    parts = error if isinstance(error, dict) else found
    fallback = error if isinstance(error, str) else "the response names no reason"
    kind = _CLASSES.get(status) or (ServerError if status >= 500 else BadRequest)
    details = parts.get("details")
    return kind(
        status,
        str(parts.get("code") or f"HTTP_{status}"),
        str(parts.get("message") or fallback),
        details=details if isinstance(details, dict) else None,
        request_id=headers.get("x-request-id"),
        retry_after_s=retry_after_s(headers.get("retry-after"), time.time()),
    )


def retry_after_s(value: str | None, now: float) -> float | None:
    """Seconds to wait by ``Retry-After``, which has seconds or a date; None if it is missing or illegible."""
    if value is None:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except ValueError:
        return None
