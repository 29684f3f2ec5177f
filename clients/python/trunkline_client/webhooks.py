"""
Signatures of what the server sends: webhooks, requests in Twilio's form, and handshakes of streams.

A webhook carries two signatures: ``webhook-signature`` of Standard Webhooks, over id, time and body, and
``X-Service-Signature`` over the body alone. The first is judged wherever it is: it also tells the age.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from trunkline_client.errors import WebhookInvalid

__all__ = ["WebhookEvent", "verify_stream", "verify_twilio", "verify_webhook"]

TOLERANCE_S: Final = 300.0
"""Age of an event from which it is refused, as libraries for Standard Webhooks do."""

_STANDARD_PREFIX: Final = "whsec_"
_FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """
    A webhook whose signature is right.

    `delivery_id` is the same for every attempt: discard what you had. `content` is the whole body, `data` the
    event's part of it. A form, as servers of TwiML get it, has its fields in both.
    """

    name: str
    delivery_id: str
    sent_at_s: int
    content: Mapping[str, Any] = field(repr=False)

    @property
    def data(self) -> Mapping[str, Any]:
        """Object of the event; the content itself if it has none."""
        data = self.content.get("data")
        return data if isinstance(data, dict) else self.content


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secret: str | Sequence[str],
    *,
    tolerance_s: float = TOLERANCE_S,
    now: float | None = None,
) -> WebhookEvent:
    """
    Check the signature of a webhook, and return its event.

    `body` must be the bytes as they arrived. During a rotation name both secrets; of the library's two forms
    of signature the server makes one by each. A GET is signed over an empty body.

    Raises:
        WebhookInvalid: No signature is there or right, the event is too old, or the body illegible.
    """
    found = {name.lower(): value for name, value in headers.items()}
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not any(secrets):
        raise WebhookInvalid("there is no secret to check with")
    sent_at_s = _time_of(found.get("webhook-timestamp") or found.get("x-service-timestamp"))
    delivery_id = found.get("webhook-id") or found.get("x-service-delivery") or ""
    if "webhook-signature" in found:
        if abs((time.time() if now is None else now) - sent_at_s) > tolerance_s:
            raise WebhookInvalid("the event is too old, or the clocks differ")
        content = f"{delivery_id}.{sent_at_s}.".encode() + body
        wanted = [f"v1,{_base64(_key(one), content, 'sha256')}" for one in secrets]
        _require_one(found["webhook-signature"].split(" "), wanted)
    elif "x-service-signature" in found:
        wanted = [f"sha256={_hex(one.encode(), body)}" for one in secrets]
        _require_one([found["x-service-signature"]], wanted)
    else:
        raise WebhookInvalid("there is no signature")
    return WebhookEvent(
        found.get("x-service-event", ""),
        delivery_id,
        sent_at_s,
        _content_of(body, found.get("content-type", "")),
    )


def verify_twilio(url: str, fields: Mapping[str, str], signature: str, secret: str) -> None:
    """
    Check ``X-Twilio-Signature`` of a request for TwiML: `url` as it was asked, `fields` of a POST's form.

    Raises:
        WebhookInvalid: It is not by the secret.
    """
    content = url + "".join(f"{name}{fields[name]}" for name in sorted(fields))
    _require_one([signature], [_base64(secret.encode(), content.encode(errors="replace"), "sha1")])


def verify_stream(
    headers: Mapping[str, str],
    url: str,
    secret: str | Sequence[str],
    *,
    tolerance_s: float = TOLERANCE_S,
    now: float | None = None,
) -> None:
    """
    Check the handshake of a stream: `url` is the ``stream_url`` as it was given to the server.

    Raises:
        WebhookInvalid: No signature is there or right, or the handshake is too old.
    """
    found = {name.lower(): value for name, value in headers.items()}
    secrets = [secret] if isinstance(secret, str) else list(secret)
    sent_at_s = _time_of(found.get("x-service-timestamp"))
    if abs((time.time() if now is None else now) - sent_at_s) > tolerance_s:
        raise WebhookInvalid("the handshake is too old, or the clocks differ")
    wanted = [f"sha256={_hex(one.encode(), f'{sent_at_s}.{url}'.encode())}" for one in secrets if one]
    _require_one(found.get("x-service-signature", "").split(" "), wanted)


def _require_one(given: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse unless one of the signatures is one of those wanted; all are compared, in constant time."""
    same = [hmac.compare_digest(one.encode(), other.encode()) for one in given for other in wanted]
    if not any(same):
        raise WebhookInvalid("the signature is not by this secret")


def _time_of(value: str | None) -> int:
    if value is None or not value.isascii() or not value.isdigit():
        raise WebhookInvalid("the time of the request is missing")
    return int(value)


def _key(secret: str) -> bytes:
    """Return the bytes that a secret of Standard Webhooks stands for; any other keys with its characters."""
    if secret.startswith(_STANDARD_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(_STANDARD_PREFIX) + "==")
        except binascii.Error:
            pass  # The server takes the characters, too.
    return secret.encode()


def _hex(key: bytes, content: bytes) -> str:
    return hmac.new(key, content, "sha256").hexdigest()


def _base64(key: bytes, content: bytes, digest: str) -> str:
    return base64.b64encode(hmac.digest(key, content, digest)).decode()


def _content_of(body: bytes, content_type: str) -> Mapping[str, Any]:
    if not body:
        return {}
    try:
        if content_type.split(";")[0].strip().lower() == _FORM:
            return dict(parse_qsl(body.decode(), keep_blank_values=True))
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WebhookInvalid("the body is illegible") from error
    if not isinstance(content, dict):
        raise WebhookInvalid("the body is no object")
    return content
