"""Requests for instructions and their answers, as the journal of a call keeps them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from callcontrol.calls.records.journal import MAX_BODIES_BYTES, CallJournal, HookBodies
from callcontrol.egress.aio.http_client import NotAnswered
from callcontrol.egress.requests import FormRequest, Reply
from callcontrol.models import WebhookEvent
from callcontrol.webhooks.aio.exchanges import note_exchange
from callcontrol.webhooks.attempts import MAX_BODY_BYTES
from callcontrol.webhooks.exchanges import without_secrets
from tests.support.domain import NOW

EVENT = WebhookEvent(
    event_id="e1",
    account_sid="a1",
    event="call.answered",
    url="https://hooks.example.com/verbs?shop=7",
    body=b'{"event": "call.answered", "call_sid": "c1"}',
    created_at=NOW,
    call_sid="c1",
    method="POST",
)


def noted(outcome: Reply | NotAnswered, **given: Any) -> tuple[Any, HookBodies]:
    """Details and bodies of the only entry of a journal."""
    journal = CallJournal()
    event = given.pop("event", EVENT)
    note_exchange(journal, event, ("whsec_c2VjcmV0",), outcome, attempt=1, took_ms=7, **given)
    [entry] = journal.of("c1")
    assert (entry.kind, entry.name) == ("webhook", event.event)
    assert entry.bodies is not None
    return entry.details, entry.bodies


def test_request_and_answer_are_kept() -> None:
    body = b'[{"verb": "hangup"}]'
    details, bodies = noted(Reply("application/json", body, 201, len(body)))
    assert details == {
        **{"url": EVENT.url, "method": "POST", "attempt": 1, "status": 201, "took_ms": 7},
        **{"type": "application/json", "bytes": len(body)},
    }
    assert bodies == HookBodies(EVENT.body.decode(), body.decode(), len(body), True)


def test_a_refusal_is_kept_with_its_reason_and_no_answer_without_a_status() -> None:
    refusal = Reply("text/plain", b"<b>down</b>", 503, 11)
    details, bodies = noted(NotAnswered("http_status", "answered 503", 503, refusal))
    assert (details["status"], details["problem"], bodies.answer) == (503, "answered 503", "<b>down</b>")
    details, bodies = noted(NotAnswered("timeout", "no answer within 5 s"))
    assert details["problem"] == "no answer within 5 s" and "status" not in details
    assert (bodies.request, bodies.answer, bodies.answer_bytes) == (EVENT.body.decode(), "", 0)


def test_a_form_and_a_get_are_kept_as_they_were_sent() -> None:
    form = FormRequest("https://hooks.example.com/?a=1&CallSid=c1", b"CallSid=c1&Digits=5", {})
    assert noted(Reply("text/xml"), form=form)[1].request == "CallSid=c1&Digits=*"
    get = replace(EVENT, method="GET")
    assert noted(Reply("text/xml"), form=form, event=get)[1].request == "a=1&CallSid=c1"
    assert noted(Reply("text/xml"), event=get)[1].request == "shop=7&event=call.answered&call_sid=c1"


def test_an_answer_is_cut_and_its_signatures_and_secrets_are_withheld() -> None:
    sent = {"webhook-signature": "v1,c2lnbmF0dXJlb2Z0aGVyZXF1ZXN0"}
    body = b"c2lnbmF0dXJlb2Z0aGVyZXF1ZXN0 whsec_c2VjcmV0 " + b"x" * 9000
    _, bodies = noted(Reply("text/plain", body, 200, len(body), sent=sent))
    assert bodies.answer is not None and not bodies.is_whole and bodies.answer_bytes == len(body)
    assert len(bodies.answer) == MAX_BODY_BYTES
    assert "c2ln" not in bodies.answer and "c2VjcmV0" not in bodies.answer
    _, bodies = noted(Reply("audio/wav", b"RIFF\0\0", 200, 6))
    assert (bodies.answer, bodies.answer_bytes) == (None, 6)


@pytest.mark.parametrize(
    "body",
    [
        '[{"verb": "stream", "auth": {"username": "u", "password": "HUSH"}}]',
        '{"stream_auth": {"type": "bearer", "token" : "HU\\"SH"}}',
        '{"model": {"provider": "openai", "api_key": "HUSH"}}',
        '{"llm": {"auth": {"apiKey":"HUSH"}}}',
        '{"inner": "{\\"password\\": \\"HUSH\\", \\"a\\": 1}"}',
        '{"headers": {"Authorization": "HUSH HUSH"}}',
        "<Sip username='u' password='HUSH'>sip:x@example.com</Sip>",
        '<Parameter name="access_token" value="HUSH"/>',
        "<Password>HUSH</Password>",
        "CallSid=c1&client_secret=HUSH&a=1",
        "token=HUSH",
        "wss://user:HUSH@agent.example.com/stream",
        "Bearer HUSHHUSH.abc",
        # Cut within the secret.
        '{"password": "HUSH',
        '{"password": "HUSH\\',
        '[{"verb": "say", "text": "Your code is HUSH, \\"HUSH\\"."}]',
        '[{"verb": "say", "text": ["HUSH]", "HU\\"SH"]}]',
        '[{"verb": "say", "text": ["HUSH]", "HUSH\\',
        '{"event": "call.gathered", "speech": "HUSH"}',
        '{"speech": {"alternatives": [{"confidence": 1, "transcript": "HUSH"}]}}',
        '{"inner": "[{\\"verb\\": \\"say\\", \\"text\\": \\"HUSH\\"}]"}',
        "CallSid=c1&SpeechResult=HUSH+HUSH&Confidence=1",
        "<Response><Say language='en-IN'>HUSH <say-as interpret-as='digits'>HUSH</say-as></Say></Response>",
        "<Response><Gather><Say><![CDATA[HUSH",
        "<Message><Body>HUSH</Body></Message>",
    ],
)
def test_what_has_the_name_of_a_secret_is_withheld(body: str) -> None:
    found = without_secrets(body.encode())
    assert b"HU" not in found and b"SH" not in found and b"****" in found
    assert len(found) == len(body)


@pytest.mark.parametrize(
    "body",
    [
        '{"event": "call.gathered", "digits": "481516", "finished_on_key": null}',
        '{"digits": 481516}',
        '{"params": {"otp_code": 481516, "PIN": "481516"}}',
        "CallSid=c1&Digits=481516&FinishedOnKey=%23",
        '[{"verb": "send_digits", "digits": "481516"}]',
        '{"dtmf": "481516"}',
        "<Dial><Number sendDigits='481516'>+911140000001</Number></Dial>",
        '<Play digits="481516"/>',
        '[{"verb": "say", "text": "Your code is 4 8 1 5 1 6, four eight one five one six"}]',
        "<Say>481516</Say>",
    ],
)
def test_a_one_time_password_that_is_said_or_pressed_is_withheld(body: str) -> None:
    found = without_secrets(body.encode())
    assert b"4815" not in found and b"4 8" not in found and b"eight" not in found and b"****" in found
    assert len(found) == len(body)


def test_neither_an_answer_nor_a_request_is_shown_in_words_of_the_program() -> None:
    form = FormRequest("https://hooks.example.com/", b"Digits=481516", {})
    reply = Reply("application/json", b"481516")
    assert "4815" not in f"{form!r} {reply!r} {HookBodies('481516', '481516', 6, True)!r}"


@pytest.mark.parametrize(
    "body",
    [
        '[{"verb": "hangup", "reason": "No password? No token, and no key: text us."}]',
        '[{"verb": "gather", "num_digits": 4, "input": ["digits", "speech"], "finish_on_key": "#"}]',
        "<Response><Gather numDigits='4'/><Dial>+919812345678</Dial><Sayings>Basic plan</Sayings></Response>",
        '{"event": "call.context", "shipping": "1", "max_tokens": 4096}',
        "",
    ],
)
def test_what_has_no_such_name_stays(body: str) -> None:
    assert without_secrets(body.encode()) == body.encode()


@pytest.mark.parametrize(
    "part",
    ['"token"', "a-", "token ", '"', '"passwordpassword', "&secret", "<secret ", "bearer ", "://", "\\"]
    + ['"text":["', '"text":[', "<say", "<say>", "<say a", '"otp', "pin_", "otp-"],
)
def test_hostile_answers_take_no_long_time(part: str) -> None:
    body = (part * (2 * MAX_BODY_BYTES // len(part)) + " token @").encode()
    begun = time.process_time()
    without_secrets(body)
    # A pattern that goes back over its own way takes minutes.
    assert time.process_time() - begun < 5.0


def test_the_bodies_of_a_call_have_a_limit() -> None:
    journal = CallJournal()
    body = b"x" * MAX_BODY_BYTES
    for attempt in range(40):
        reply = Reply("text/plain", body, 200, len(body))
        note_exchange(journal, EVENT, (), reply, attempt=attempt, took_ms=1)
    kept = [entry.bodies for entry in journal.of("c1")]
    assert len(kept) == 40 and kept[0] is not None and kept[-1] is None
    assert sum(bodies.size_bytes for bodies in kept if bodies) <= MAX_BODIES_BYTES


def test_a_body_counts_with_the_memory_that_it_takes() -> None:
    journal = CallJournal()
    # Python keeps each character of such a text in four bytes.
    body = "\N{GRINNING FACE}".encode() + b"x" * MAX_BODY_BYTES
    for attempt in range(40):
        reply = Reply("text/plain", body, 200, len(body))
        note_exchange(journal, EVENT, (), reply, attempt=attempt, took_ms=1)
    assert len([entry for entry in journal.of("c1") if entry.bodies is not None]) == 3
