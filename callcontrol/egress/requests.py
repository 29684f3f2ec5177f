"""Requests to customers' servers: signatures, forms, meaning of the status."""

import base64
import binascii
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from callcontrol.models import WebhookEvent
from media.streams import sign_as_twilio

RequestProblem = Literal["dns", "connect", "tls", "http_status", "timeout", "protocol"]
"""Reason code of a request without a usable answer."""

FORM_TYPE: Final = "application/x-www-form-urlencoded"

JAMBONZ_START: Final = b'{"call_sid":'
"""Beginning of a body in the form of jambonz; that of every other body in JSON names its event first."""

_ASCII: Final = "".join(map(chr, range(0x21, 0x7F)))
_STANDARD_PREFIX: Final = "whsec_"


@dataclass(frozen=True, slots=True)
class FormRequest:
    """A request ready to be sent; the signature is made with a secret and is not shown in ``repr``."""

    url: str
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """
    Answer of a customer's server, or the beginning of one that is no success.

    Attributes:
        media_type: Without parameters, in lower case.
        length_bytes: Bytes of the body that were read.
        is_whole: True if it was read to its end.
        sent: Header fields of the request, with its signatures.
    """

    media_type: str
    body: bytes = field(default=b"", repr=False)
    status: int = 200
    length_bytes: int = 0
    is_whole: bool = True
    sent: Mapping[str, str] = field(default_factory=dict, repr=False)


def is_success(status: int) -> bool:
    """Return True if the status means that the event was accepted; a redirect does not."""
    return 200 <= status <= 299


def as_sent(url: str) -> str:
    """Return a URL as it is sent, which Twilio's signature covers."""
    return quote(url, safe=_ASCII)


def form_signature(key: str, url: str, fields: Mapping[str, str]) -> str:
    """The value of ``X-Twilio-Signature`` for the URL as it is sent and the fields of a POST."""
    content = url + "".join(f"{name}{fields[name]}" for name in sorted(fields))
    return sign_as_twilio(key, content)


def form_request(
    url: str, method: Literal["GET", "POST"], fields: Mapping[str, str], key: str | None
) -> FormRequest:
    """
    Make a request with the fields of a form, signed as Twilio does with the key if there is one.

    It has one signature only: servers of TwiML compare the whole header with the value that they expect.
    """
    url = as_sent(url)
    if method == "GET":
        parts = urlsplit(url)
        query = "&".join(part for part in (parts.query, urlencode(fields)) if part)
        whole = urlunsplit(parts._replace(query=query, fragment=""))
        return FormRequest(whole, b"", _twilio_signed(whole, {}, key))
    headers = {**_twilio_signed(url, fields, key), "Content-Type": FORM_TYPE}
    return FormRequest(url, urlencode(fields).encode(), headers)


def _twilio_signed(url: str, fields: Mapping[str, str], key: str | None) -> dict[str, str]:
    return {"X-Twilio-Signature": form_signature(key, url, fields)} if key else {}


def signed_headers(
    event: WebhookEvent, secrets: Sequence[str], unix_time_s: int, form_secret: str | None = None
) -> dict[str, str]:
    """
    HTTP header fields of one attempt.

    ``secrets`` are the current one and, during a rotation, the previous one. ``X-Service-Signature`` signs
    the body with the secret as displayed. It has one value, which receivers compare as a whole: during a
    rotation that of the previous secret, which they know. The Standard Webhooks fields sign id, time and body
    with the key that ``whsec_`` secrets encode; ``webhook-signature`` has the signatures of both secrets,
    separated by a space. ``Jambonz-Signature`` is that of bodies in the form of jambonz: it signs time and
    body with each secret as displayed.

    The body of an event is a JSON object, or else a form, which ``form_secret`` signs as Twilio does.

    A GET is signed over its empty body. A subscription may have no secret: its deliveries carry the ids and
    the time, and no signature.

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
        headers["X-Service-Signature"] = f"sha256={_hex(keys[-1][0], body)}"
        headers["webhook-signature"] = " ".join(f"v1,{_base64(key, content)}" for _, key in keys)
        if event.body.startswith(JAMBONZ_START):
            headers["Jambonz-Signature"] = _jambonz_signature(unix_time_s, event.body, secrets)
    if event.method == "POST":
        headers["Content-Type"] = "application/json" if event.body.startswith(b"{") else FORM_TYPE
    if headers.get("Content-Type") == FORM_TYPE:
        fields = dict(parse_qsl(event.body.decode(), keep_blank_values=True))
        headers |= _twilio_signed(as_sent(event.url), fields, form_secret)
    return headers


def _jambonz_signature(unix_time_s: int, body: bytes, secrets: Sequence[str]) -> str:
    """Signatures of a body, for which receivers accept any one: its time, then one by each secret."""
    content = f"{unix_time_s}.".encode() + body
    signatures = (f"v1={_hex(secret.encode(), content)}" for secret in secrets)
    return ",".join((f"t={unix_time_s}", *signatures))


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
