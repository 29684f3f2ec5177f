"""Verification of webhooks against what the server signs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from standardwebhooks.webhooks import Webhook

from callcontrol.egress.requests import form_signature, signed_headers
from callcontrol.models import WebhookEvent as Sent
from media.streams.handshake import sign
from trunkline_client.errors import WebhookInvalid
from trunkline_client.webhooks import verify_stream, verify_twilio, verify_webhook

NOW_S = 1_800_000_000
BODY = json.dumps({"event": "call.completed", "data": {"status": "completed"}}).encode()
STANDARD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SECRETS = [STANDARD, "a plain secret", "whsec_not base64!"]


def sent(secrets: list[str], body: bytes = BODY, **fields: Any) -> dict[str, str]:
    event = Sent(
        **{
            **{"event_id": str(uuid4()), "account_sid": "a", "call_sid": "c", "event": "call.completed"},
            **{"url": "https://example.com/", "body": body, "created_at": datetime.now(UTC), **fields},
        }
    )
    return signed_headers(event, secrets, NOW_S)


@pytest.mark.parametrize("secret", SECRETS)
def test_what_the_server_signs_is_genuine(secret: str) -> None:
    headers = sent([secret])
    event = verify_webhook(headers, BODY, secret, now=NOW_S)
    assert (event.name, event.data["status"], event.sent_at_s) == ("call.completed", "completed", NOW_S)
    assert event.delivery_id == headers["webhook-id"]
    lower = {name.lower(): value for name, value in headers.items()}
    assert verify_webhook(lower, BODY, secret, now=NOW_S) == event


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("changed", ["body", "secret", "id", "time", "signature"])
def test_what_was_changed_is_not(secret: str, changed: str) -> None:
    headers, body, other = sent([secret]), BODY, secret
    match changed:
        case "body":
            body += b" "
        case "secret":
            other = "another secret"
        case "id":
            headers["webhook-id"] = str(uuid4())
        case "time":
            headers["webhook-timestamp"] = str(NOW_S + 1)
        case "signature":
            headers["webhook-signature"] = "v1,"
    with pytest.raises(WebhookInvalid):
        verify_webhook(headers, body, other, now=NOW_S)


@pytest.mark.parametrize("secret", ["the new secret", "the old secret"])
def test_either_secret_of_a_rotation_verifies(secret: str) -> None:
    headers = sent(["the new secret", "the old secret"])
    assert verify_webhook(headers, BODY, secret, now=NOW_S)
    assert verify_webhook(headers, BODY, ["another", secret], now=NOW_S)


def test_the_signature_of_the_body_alone_verifies_where_it_is_the_only_one() -> None:
    headers = {name: value for name, value in sent(["one secret"]).items() if not name.startswith("webhook-")}
    assert verify_webhook(headers, BODY, "one secret")
    with pytest.raises(WebhookInvalid):
        verify_webhook(headers, BODY + b" ", "one secret")


@pytest.mark.parametrize("now_s", [NOW_S - 301, NOW_S + 301])
def test_an_old_event_is_refused(now_s: int) -> None:
    with pytest.raises(WebhookInvalid, match="too old"):
        verify_webhook(sent([STANDARD]), BODY, STANDARD, now=now_s)
    assert verify_webhook(sent([STANDARD]), BODY, STANDARD, now=now_s, tolerance_s=400)


@pytest.mark.parametrize("missing", ["all", "signatures", "times"])
def test_unsigned_webhooks_are_refused(missing: str) -> None:
    left_out = {"all": "", "signatures": "signature", "times": "timestamp"}[missing]
    headers = {name: value for name, value in sent([STANDARD]).items() if left_out not in name.lower()}
    with pytest.raises(WebhookInvalid):
        verify_webhook(headers, BODY, STANDARD, now=NOW_S)


def test_there_must_be_a_secret() -> None:
    for none in ([""], []):
        with pytest.raises(WebhookInvalid, match="no secret"):
            verify_webhook(sent([STANDARD]), BODY, none, now=NOW_S)


@pytest.mark.parametrize("body", [b"[1]", b"{", b'"x"', b"\xff"])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    headers = sent([STANDARD], body=BODY)
    library = Webhook(STANDARD)
    content = body.decode("latin-1")
    headers["webhook-signature"] = library.sign(
        headers["webhook-id"], datetime.fromtimestamp(NOW_S, UTC), content
    )
    with pytest.raises(WebhookInvalid):
        verify_webhook(headers, body, STANDARD, now=NOW_S)


def test_a_form_and_a_get() -> None:
    form = b"CallSid=c-1&Digits="
    event = verify_webhook(sent([STANDARD], body=form), form, STANDARD, now=NOW_S)
    assert event.data == {"CallSid": "c-1", "Digits": ""}
    assert verify_webhook(sent([STANDARD], method="GET"), b"", STANDARD, now=NOW_S).data == {}


def test_the_signature_of_twilio() -> None:
    fields = {"CallSid": "c-1", "Body": "é"}
    signature = form_signature("key", "https://example.com/voice?x=1", fields)
    verify_twilio("https://example.com/voice?x=1", fields, signature, "key")
    with pytest.raises(WebhookInvalid):
        verify_twilio("https://example.com/voice", fields, signature, "key")


def test_the_handshake_of_a_stream() -> None:
    url = "wss://bot.example.com/ws?x=1"
    both = f"{sign('new', NOW_S, url)} {sign('old', NOW_S, url)}"
    headers = {"X-Service-Timestamp": str(NOW_S), "X-Service-Signature": both}
    for secret in ("new", "old"):
        verify_stream(headers, url, secret, now=NOW_S)
    for wrong in (("wss://bot.example.com/ws", "new", NOW_S), (url, "x", NOW_S), (url, "new", NOW_S + 301)):
        with pytest.raises(WebhookInvalid):
            verify_stream(headers, wrong[0], wrong[1], now=wrong[2])
