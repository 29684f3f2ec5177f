"""Sans-I/O rules of webhooks: signatures, retry schedule, meaning of responses."""

import base64
import binascii
import hmac
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from callcontrol.models import WebhookEvent

__all__ = [
    "OFFSETS_S",
    "TIMEOUT_S",
    "is_gone",
    "is_success",
    "origin",
    "query_url",
    "retry_after_s",
    "retry_delay_s",
    "signed_headers",
]

OFFSETS_S: Final = (0.0, 5.0, 30.0, 120.0, 600.0, 3600.0, 21_600.0, 86_400.0)
"""Attempt times in seconds from the first attempt; after the last one the delivery has failed."""

TIMEOUT_S: Final = 10.0
"""Response time limit of a receiver, in seconds."""

_MAX_RETRY_AFTER_S: Final = 86_400.0
_JITTER: Final = 0.2
_STANDARD_PREFIX: Final = "whsec_"


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


def is_success(status: int) -> bool:
    """Return True if the status means that the event was accepted; a redirect does not."""
    return 200 <= status <= 299


def is_gone(status: int) -> bool:
    """Return True if the status means that the URL never wants another event (410)."""
    return status == 410


@lru_cache(4096)
def origin(url: str) -> str:
    """Normalized scheme, host and port of a URL; the text itself if it is not a URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return url
    return f"{parts.scheme}://{(parts.hostname or '').rstrip('.')}:{port}"


def signed_headers(event: WebhookEvent, secrets: Sequence[str], unix_time_s: int) -> dict[str, str]:
    """
    HTTP header fields of one attempt.

    ``X-Service-Signature`` signs the body with the secret as displayed; the Standard Webhooks fields sign
    id, time and body with the key that ``whsec_`` secrets encode. With two secrets, during a rotation, both
    sign, separated by a space. A GET is signed over its empty body. A subscription may have no secret: its
    deliveries carry the ids and the time, and no signature.

    Raises:
        ValueError: A secret encodes an empty key, or there is none and the event has no subscription.
    """
    keys = [(secret.encode(), _key(secret)) for secret in secrets]
    if not all(key for _, key in keys) or not (keys or event.subscription_id):
        raise ValueError("the account has no secret to sign with")
    headers = {
        "X-Service-Timestamp": str(unix_time_s),
        "X-Service-Event": event.event,
        "X-Service-Delivery": event.delivery_id,
        "webhook-id": event.delivery_id,
        "webhook-timestamp": str(unix_time_s),
    }
    if keys:
        body = event.body if event.method == "POST" else b""
        content = f"{event.delivery_id}.{unix_time_s}.".encode() + body
        headers["X-Service-Signature"] = " ".join(f"sha256={_hex(shown, body)}" for shown, _ in keys)
        headers["webhook-signature"] = " ".join(f"v1,{_base64(key, content)}" for _, key in keys)
    if event.method == "POST":
        headers["Content-Type"] = "application/json"
    return headers


def query_url(event: WebhookEvent) -> str:
    """URL of a GET: the customer's query unchanged, followed by the event's flattened fields."""
    parts = urlsplit(event.url)
    fields = urlencode(_flat(json.loads(event.body)))
    query = f"{parts.query}&{fields}" if parts.query else fields
    return urlunsplit(parts._replace(query=query, fragment=""))


def _flat(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Scalars by name; those of ``data`` move up a level, deeper structures and nulls are left out."""
    data = value.get("data")
    merged = {**data, **value} if isinstance(data, dict) else value
    return [
        (name, str(item).lower() if isinstance(item, bool) else str(item))
        for name, item in merged.items()
        if isinstance(item, str | int | float)
    ]


def _key(secret: str) -> bytes:
    if not secret.startswith(_STANDARD_PREFIX):
        return secret.encode()
    encoded = secret.removeprefix(_STANDARD_PREFIX)
    try:
        # Surplus padding is ignored, missing padding is not.
        return base64.b64decode(encoded + "==")
    except binascii.Error:
        return secret.encode()


def _hex(key: bytes, content: bytes) -> str:
    return hmac.digest(key, content, "sha256").hex()


def _base64(key: bytes, content: bytes) -> str:
    return base64.b64encode(hmac.digest(key, content, "sha256")).decode()
