"""
Requests whose answers a call waits for, as its journal keeps them: short, and without secrets.

Signatures of the request are withheld as in the log of a delivery, and beside them what has the name of a
secret: verbs carry passwords of gateways, tokens of streams and keys of vendors.
"""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from callcontrol.calls.records.journal import HookBodies
from callcontrol.egress.requests import FormRequest, Reply, query_url
from callcontrol.models import WebhookEvent
from callcontrol.webhooks.attempts import MAX_BODY_BYTES, kept_body, margin_bytes, withheld_values

__all__ = ["bodies_of", "sent_body", "without_secrets"]

_SIGNS: Final = (
    b"passw",
    b"secret",
    b"token",
    b"key",
    b"authorization",
    b"credential",
    b"bearer",
    b"basic",
    b"@",
)
"""Every match of the patterns contains one of these, in any case: most bodies need only this check."""
# Bounded, so that no body takes long.
_NAME: Final = (
    rb"[\w.-]{0,24}(?:passw(?:or)?d|secret|token|api[_-]?key|authorization|credentials?)[\w.-]{0,24}"
)
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # JSON, also within a text of JSON; attributes and parameters of XML; forms and queries; URLs.
        rb'(?<!\\)"' + _NAME + rb'"\s{0,8}:\s{0,8}"((?:[^"\\]|\\.)*)',
        rb'\\"' + _NAME + rb'\\"\s{0,8}:\s{0,8}\\"((?:[^"\\]|\\[^"])*)',
        rb"(?<![\w.-])" + _NAME + rb"\s{0,8}=\s{0,8}[\"']([^\"']*)",
        rb"<" + _NAME + rb"\s{0,8}>([^<]*)",
        rb"[\"']" + _NAME + rb"[\"'][^<>]{0,64}?\svalue\s{0,8}=\s{0,8}[\"']([^\"']*)",
        rb"(?:^|[&?;])" + _NAME + rb"=([^&\s\"'<>]+)",
        rb"://([^/\s\"'<>@]+)@",
        rb"\b(?:bearer|basic)\s{1,8}([\w+/=.~-]{8,})",
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
    """Replace the values of what has the name of a secret, by as many asterisks."""
    lower = body.lower()
    if not any(sign in lower for sign in _SIGNS):
        return body
    for pattern in _PATTERNS:
        body = pattern.sub(_masked, body)
    return body


def _masked(found: re.Match[bytes]) -> bytes:
    begin, end = found.start(1) - found.start(), found.end(1) - found.start()
    return found[0][:begin] + b"*" * (end - begin) + found[0][end:]
