"""
Requests to servers written for TwiML: a form, with the fields and the signature they expect.

The fields have the names of Twilio's requests, so that such a server needs no change. The signature is
Twilio's too: HMAC-SHA1 over the URL, followed by the names and values of a POST in the order of the names.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from callcontrol.calls.plan import WebhookMethod
from callcontrol.egress.requests import FormRequest
from callcontrol.models import CallRecord, CallStatus
from media.streams import sign_as_twilio

FORM_TYPE: Final = "application/x-www-form-urlencoded"

Fact = str | int | None

_API_VERSION: Final = "2010-04-01"
_ASCII: Final = "".join(map(chr, range(0x21, 0x7F)))
_STATUSES: Final = {CallStatus.INITIATED: "ringing"}


def form_fields(record: CallRecord, facts: Sequence[tuple[str, Fact]]) -> dict[str, str]:
    """The fields of a call: its own, then the results of the last verb."""
    direction = "inbound" if record.direction == "inbound" else "outbound-api"
    fields = {
        "CallSid": record.call_sid,
        "AccountSid": record.account_sid,
        "From": record.from_,
        "To": record.to,
        "Caller": record.from_,
        "Called": record.to,
        "CallStatus": _STATUSES.get(record.status, record.status.value),
        "Direction": direction,
        "ApiVersion": _API_VERSION,
    }
    if record.answered_by is not None:
        fields["AnsweredBy"] = _ANSWERED_BY.get(record.answered_by, "unknown")
    headers = (record.sip or {}).get("headers")
    if isinstance(headers, Mapping):
        fields.update({f"SipHeader_{name}": str(value) for name, value in headers.items()})
    for name, value in facts:
        known = _FACTS.get(name)
        if known is not None and value is not None:
            fields[known[0]] = known[1](value)
    return fields


def form_request(url: str, method: WebhookMethod, fields: Mapping[str, str], key: str | None) -> FormRequest:
    """
    The request with the fields, signed with the key if there is one.

    It has one signature only: servers of TwiML compare the whole header with the value that they expect.
    """
    url = quote(url, safe=_ASCII)  # The signature covers the URL as it is sent.
    if method == "GET":
        parts = urlsplit(url)
        query = "&".join(part for part in (parts.query, urlencode(fields)) if part)
        whole = urlunsplit(parts._replace(query=query, fragment=""))
        return FormRequest(whole, b"", _signed(whole, {}, key))
    headers = {**_signed(url, fields, key), "Content-Type": FORM_TYPE}
    return FormRequest(url, urlencode(fields).encode(), headers)


def form_signature(key: str, url: str, fields: Mapping[str, str]) -> str:
    """The value of ``X-Twilio-Signature`` for the URL as it is sent and the fields of a POST."""
    content = url + "".join(f"{name}{fields[name]}" for name in sorted(fields))
    return sign_as_twilio(key, content)


def _signed(url: str, fields: Mapping[str, str], key: str | None) -> dict[str, str]:
    return {"X-Twilio-Signature": form_signature(key, url, fields)} if key else {}


def _seconds(milliseconds: Fact) -> str:
    return str(round(int(milliseconds or 0) / 1000))


_ANSWERED_BY: Final = {"human": "human", "machine": "machine_start"}
_FACTS: Final[Mapping[str, tuple[str, Callable[[Fact], str]]]] = {
    "digits": ("Digits", str),
    "finished_on_key": ("FinishedOnKey", str),
    "recording_url": ("RecordingUrl", str),
    "recording_duration_ms": ("RecordingDuration", _seconds),
    "dial_call_status": ("DialCallStatus", str),
    "dial_call_duration": ("DialCallDuration", str),
    "failed_url": ("ErrorUrl", str),
    "error_message": ("ErrorMessage", str),
}
"""By the name of a fact: the name of the form field, and the function that formats its value."""
