"""
Requests whose answers a call waits for, as its journal keeps them: short, and without secrets.

Signatures of the request are withheld as in the log of a delivery, and beside them what has the name of a
secret: verbs carry passwords of gateways, tokens of streams and keys of vendors. So is what is said and
pressed in the call, as one-time passwords are told that way.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, cast
from urllib.parse import urlsplit

from callcontrol.calls.records.journal import HookBodies
from callcontrol.egress.requests import FormRequest, Reply, query_url
from callcontrol.models import WebhookEvent
from callcontrol.webhooks.attempts import MAX_BODY_BYTES, kept_body, margin_bytes, withheld_values

__all__ = ["bodies_of", "sent_body", "without_secrets"]

# Bounded, or possessive, so that no body takes long.
_CODES: Final = (
    r"(?:send_?)?digits|dtmf|.*otp.*|(?:.*[_.-])?(?:pin(?:_?code)?|cv[vc])"
    r"|.*(?:passw(?:or)?d|passcode|secret)"
)
_TEXTS: Final = (
    r".*(?:passw(?:or)?d|passcode|secret|token|api[_-]?key|authorization|credentials?).*"
    r"|texts?|greeting|transcript|speech|.*speech_?result"
)
_HAS_CODE: Final = re.compile(_CODES, re.IGNORECASE)
_HAS_TEXT: Final = re.compile(f"{_CODES}|{_TEXTS}", re.IGNORECASE)
_MEMBERS: Final = tuple(
    (sign, re.compile(name), re.compile(value, re.DOTALL))
    for sign, name, value in (
        # JSON, also within a text of JSON; attributes, forms and queries; elements and parameters of XML.
        (
            b":",
            rb'(?<!\\)"([\w.-]{1,72})"\s{0,8}:\s{0,8}',
            rb'"((?:[^"\\]|\\.)*+)|\[((?:[^\]"]|"(?:[^"\\]|\\.)*+(?:"|\\?\Z))*+)|([0-9.]++)',
        ),
        (
            b'\\"',
            rb'\\"([\w.-]{1,72})\\"\s{0,8}:\s{0,8}',
            rb'\\"((?:[^"\\]|\\[^"])*+)|\[([^\]]*+)|([0-9.]++)',
        ),
        (
            b"=",
            rb"(?<![\w.-])([\w.-]{1,72})\s{0,8}=\s{0,8}",
            rb"[\"']([^\"']*+)|([^&\s\"'<>]++)",
        ),
        (b"<", rb"<([\w.-]{1,72})\s{0,8}>", rb"([^<]*+)"),
        (b"<", rb"[\"']([\w.-]{1,72})[\"']", rb"[^<>]{0,64}?\svalue\s{0,8}=\s{0,8}[\"']([^\"']*+)"),
    )
)
"""Bytes that a body with such members has, the name of a member, and the value behind it."""
_OTHERS: Final = tuple(
    (sign, re.compile(pattern, re.IGNORECASE | re.DOTALL))
    for sign, pattern in (
        # Elements to speak may have elements of SSML within.
        (b"<", rb"<(say|speak|message|body|sms)(?![\w.-])[^<>]*+>(.*?)(?:</\1\s{0,8}>|\Z)"),
        (b"@", rb"(://)([^/\s\"'<>@]++)@"),
        (b" ", rb"\b(bearer|basic)\s{1,8}([\w+/=.~-]{8,})"),
    )
)


def sent_body(event: WebhookEvent, form: FormRequest | None) -> bytes:
    """The body of the request; for a GET the query that has its fields."""
    if event.method == "GET":
        return urlsplit(query_url(event) if form is None else form.url).query.encode()
    return event.body if form is None else form.body


def bodies_of(request: bytes, reply: Reply | None, secrets: Sequence[str]) -> HookBodies:
    """
    Return what is kept of a request and its answer.

    A secret across the cut is found by its beginning, and a signature only whole: so the cut comes last.
    """
    withheld = withheld_values({} if reply is None else reply.sent, secrets)
    most = MAX_BODY_BYTES + margin_bytes(withheld)
    asked = kept_body(without_secrets(request[:most]), len(request), withheld, is_whole=True)
    if reply is None:
        return HookBodies(asked.text or "", "", 0, is_whole=True)
    told = kept_body(
        without_secrets(reply.body[:most]), reply.length_bytes, withheld, is_whole=reply.is_whole
    )
    return HookBodies(asked.text or "", told.text, told.length_bytes, told.is_whole)


def without_secrets(body: bytes) -> bytes:
    """Replace secrets, and what is said and pressed, by as many asterisks; they are known by their names."""
    spans = [found.span(2) for sign, pattern in _OTHERS if sign in body for found in pattern.finditer(body)]
    for sign, names, values in _MEMBERS:
        end = 0
        for name in names.finditer(body) if sign in body else ():
            if name.start() < end:
                continue  # It is in what is withheld.
            is_withheld, has_number = _is_withheld(name[1])
            value = values.match(body, name.end()) if is_withheld else None
            if value is not None and (value.lastindex != 3 or has_number):
                end = value.end()
                spans.append(value.span(cast("int", value.lastindex)))
    if not spans:
        return body
    masked = bytearray(body)
    for begin, end in spans:
        masked[begin:end] = b"*" * (end - begin)
    return bytes(masked)


@lru_cache(1024)
def _is_withheld(name: bytes) -> tuple[bool, bool]:
    """Return if the values of a name are withheld, and if its numbers are: those of tokens are counts."""
    text = name.decode("ascii", "replace")
    return _HAS_TEXT.fullmatch(text) is not None, _HAS_CODE.fullmatch(text) is not None
