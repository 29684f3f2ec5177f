"""Webhooks without I/O: how they are signed, when they are tried again, what an answer means."""

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from callcontrol.models import WebhookEvent

__all__ = ["ATTEMPTS", "TIMEOUT_S", "is_gone", "is_success", "query_url", "retry_delay_s", "signed_headers"]

_OFFSETS_S: Final = (0.0, 5.0, 30.0, 120.0, 600.0, 3600.0, 21_600.0, 86_400.0)

ATTEMPTS: Final = len(_OFFSETS_S)
"""How often a delivery is tried before it has failed: at once and up to a day later."""

TIMEOUT_S: Final = 10.0
"""How long a receiver has to answer."""

_MAX_RETRY_AFTER_S: Final = 86_400.0
_JITTER: Final = 0.2
_STANDARD_PREFIX: Final = "whsec_"


def retry_delay_s(attempts: int, *, jitter: float, retry_after_s: float | None = None) -> float | None:
    """
    How long to wait after the given number of failed attempts; None when there is no further one.

    Args:
        attempts: Attempts made so far, at least 1.
        jitter: A random number from 0 to 1; it spreads the delay over 20 % either way, so that the
            failures of one moment do not all come back in one moment.
        retry_after_s: What the receiver asked for; honoured up to a day, never shortened by the schedule.
    """
    if attempts >= ATTEMPTS:
        return None
    delay_s = _OFFSETS_S[attempts] - _OFFSETS_S[attempts - 1]
    delay_s *= 1.0 - _JITTER + 2.0 * _JITTER * jitter
    if retry_after_s is not None:
        delay_s = max(delay_s, min(retry_after_s, _MAX_RETRY_AFTER_S))
    return delay_s


def is_success(status: int) -> bool:
    """Whether the answer means that the event was taken; a redirect does not."""
    return 200 <= status <= 299


def is_gone(status: int) -> bool:
    """Whether the answer means that the URL wants nothing more, ever (410)."""
    return status == 410


def signed_headers(event: WebhookEvent, secrets: Sequence[str], unix_time_s: int) -> dict[str, str]:
    """
    The headers of one attempt.

    ``X-Service-Signature`` signs the body with the secret as it was shown; the Standard Webhooks trio signs
    id, time and body with the key that ``whsec_`` secrets encode. With two secrets, during a rotation, both
    sign, separated by a space. What is signed of a GET is its empty body.
    """
    body = event.body if event.method == "POST" else b""
    headers = {
        "X-Service-Timestamp": str(unix_time_s),
        "X-Service-Event": event.event,
        "X-Service-Delivery": event.delivery_id,
        "webhook-id": event.delivery_id,
        "webhook-timestamp": str(unix_time_s),
    }
    if secrets:
        content = f"{event.delivery_id}.{unix_time_s}.".encode() + body
        headers["X-Service-Signature"] = " ".join(
            f"sha256={_hex(secret.encode(), body)}" for secret in secrets
        )
        headers["webhook-signature"] = " ".join(f"v1,{_base64(_key(secret), content)}" for secret in secrets)
    if event.method == "POST":
        headers["Content-Type"] = "application/json"
    return headers


def query_url(event: WebhookEvent) -> str:
    """The URL of a GET: the event's fields, flattened, behind the query that the customer wrote."""
    parts = urlsplit(event.url)
    fields = [*parse_qsl(parts.query, keep_blank_values=True), *_flat(json.loads(event.body))]
    return urlunsplit(parts._replace(query=urlencode(fields), fragment=""))


def _flat(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Scalars by name; those of ``data`` come up a level, deeper structures and nulls are left out."""
    data = value.get("data")
    merged = {**value, **data} if isinstance(data, dict) else value
    return [
        (name, str(item).lower() if isinstance(item, bool) else str(item))
        for name, item in merged.items()
        if isinstance(item, str | int | float)
    ]


def _key(secret: str) -> bytes:
    if secret.startswith(_STANDARD_PREFIX):
        return base64.b64decode(secret.removeprefix(_STANDARD_PREFIX))
    return secret.encode()


def _hex(key: bytes, content: bytes) -> str:
    return hmac.new(key, content, hashlib.sha256).hexdigest()


def _base64(key: bytes, content: bytes) -> str:
    return base64.b64encode(hmac.digest(key, content, "sha256")).decode()
