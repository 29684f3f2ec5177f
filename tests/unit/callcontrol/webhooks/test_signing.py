"""Webhooks without I/O: signatures, schedule, answers, queries."""

import base64
import hashlib
import json
import time
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from callcontrol.egress.requests import is_success, query_url, signed_headers
from callcontrol.models import WebhookEvent
from callcontrol.webhooks.retries import OFFSETS_S, is_gone, origin, retry_after_s, retry_delay_s

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OLD_SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def event(
    body: bytes = b'{"event":"call.ringing"}',
    *,
    url: str = "https://hooks.example.com/x",
    method: Literal["POST", "GET"] = "POST",
    delivery_id: str = "",
) -> WebhookEvent:
    return WebhookEvent(
        event_id="event-1",
        account_sid="acc-1",
        event="call.ringing",
        url=url,
        body=body,
        created_at=NOW,
        call_sid="call-1",
        method=method,
        delivery_id=delivery_id,
    )


def hmac_sha256(key: bytes, content: bytes) -> bytes:
    """RFC 2104, written out: nothing in common with what is tested but the hash."""
    key = hashlib.sha256(key).digest() if len(key) > 64 else key
    key = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + content).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).digest()


# Signatures.


def test_the_hmac_of_these_tests_is_right() -> None:
    # RFC 4231, test case 2.
    assert (
        hmac_sha256(b"Jefe", b"what do ya want for nothing?").hex()
        == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    )


def test_the_vector_of_standard_webhooks() -> None:
    # Published with the reference libraries of Standard Webhooks.
    sent = event(b'{"test": 2432232314}', delivery_id="msg_p5jXN8AQM9LWM0D4loKWxJek")
    headers = signed_headers(sent, [SECRET], 1614265330)
    assert headers["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert headers["webhook-timestamp"] == "1614265330"
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_headers_of_a_post() -> None:
    sent = event()
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    trio = base64.b64encode(hmac_sha256(key, b"event-1.1700000000." + sent.body)).decode()
    assert signed_headers(sent, [SECRET], 1_700_000_000) == {
        "Content-Type": "application/json",
        "X-Service-Signature": f"sha256={hmac_sha256(SECRET.encode(), sent.body).hex()}",
        "X-Service-Timestamp": "1700000000",
        "X-Service-Event": "call.ringing",
        "X-Service-Delivery": "event-1",
        "webhook-id": "event-1",
        "webhook-timestamp": "1700000000",
        "webhook-signature": f"v1,{trio}",
    }


def test_a_get_signs_its_empty_body() -> None:
    headers = signed_headers(event(method="GET"), ["plain"], 5)
    assert "Content-Type" not in headers
    assert headers["X-Service-Signature"] == f"sha256={hmac_sha256(b'plain', b'').hex()}"
    trio = base64.b64encode(hmac_sha256(b"plain", b"event-1.5.")).decode()
    assert headers["webhook-signature"] == f"v1,{trio}"


def test_both_secrets_sign_during_a_rotation() -> None:
    both = signed_headers(event(), [SECRET, OLD_SECRET], 5)
    alone = [signed_headers(event(), [secret], 5) for secret in (SECRET, OLD_SECRET)]
    name = "webhook-signature"
    assert both[name] == " ".join(headers[name] for headers in alone)


def test_the_signature_of_one_value_is_by_the_secret_that_receivers_know() -> None:
    both = signed_headers(event(), [SECRET, OLD_SECRET], 5)
    name = "X-Service-Signature"
    assert both[name] == signed_headers(event(), [OLD_SECRET], 5)[name]


@pytest.mark.parametrize("secrets", [[], [""], ["whsec_"], [SECRET, ""]])
def test_nothing_is_signed_with_an_empty_key(secrets: list[str]) -> None:
    with pytest.raises(ValueError, match="no secret"):
        signed_headers(event(), secrets, 5)


def test_secrets_that_are_no_base64_sign_as_they_stand() -> None:
    headers = signed_headers(event(), ["whsec_a"], 5)
    trio = base64.b64encode(hmac_sha256(b"whsec_a", b"event-1.5." + event().body)).decode()
    assert headers["webhook-signature"] == f"v1,{trio}"


def test_secrets_without_padding_sign_as_with_it() -> None:
    padded = signed_headers(event(), ["whsec_" + base64.b64encode(b"12345").decode()], 5)
    bare = signed_headers(event(), ["whsec_" + base64.b64encode(b"12345").decode().rstrip("=")], 5)
    assert bare["webhook-signature"] == padded["webhook-signature"]


@pytest.mark.parametrize("secrets", [[SECRET], [OLD_SECRET, SECRET], [SECRET, OLD_SECRET]])
def test_the_library_of_standard_webhooks_accepts_them(secrets: list[str]) -> None:
    sent = event('{"event":"call.ringing","data":{"tag":"grüß"}}'.encode())
    headers = signed_headers(sent, secrets, int(time.time()))
    assert Webhook(SECRET).verify(sent.body, headers) == json.loads(sent.body)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(sent.body + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(base64.b64encode(b"another").decode()).verify(sent.body, headers)


# The schedule.


def test_the_schedule_is_the_documented_one() -> None:
    assert OFFSETS_S == (0, 5, 30, 2 * 60, 10 * 60, 3600, 6 * 3600, 24 * 3600)
    delays = [retry_delay_s(attempts, jitter=0.5) for attempts in range(1, 9)]
    assert delays == [5, 25, 90, 480, 3000, 18_000, 64_800, None]


@pytest.mark.parametrize("attempts", range(1, 8))
def test_jitter_is_a_fifth_either_way(attempts: int) -> None:
    exact = OFFSETS_S[attempts] - OFFSETS_S[attempts - 1]
    delays = [retry_delay_s(attempts, jitter=step / 100) for step in range(101)]
    assert delays[0] == pytest.approx(0.8 * exact)
    assert delays[-1] == pytest.approx(1.2 * exact)
    assert delays == sorted(delays, key=lambda delay_s: delay_s or 0.0)


def test_what_the_receiver_asks_for_lengthens_and_never_shortens() -> None:
    assert retry_delay_s(1, jitter=0.5, retry_after_s=1) == 5
    assert retry_delay_s(1, jitter=0.5, retry_after_s=60) == 60
    assert retry_delay_s(1, jitter=0.5, retry_after_s=1e9) == 86_400
    assert retry_delay_s(8, jitter=0.5, retry_after_s=60) is None


@given(
    st.lists(st.tuples(st.floats(0, 1), st.none() | st.floats(0, 1e12)), min_size=len(OFFSETS_S), max_size=20)
)
def test_the_life_of_a_delivery_that_nobody_takes(answers: list[tuple[float, float | None]]) -> None:
    now_s, made_at_s = 0.0, []
    for jitter, asked_s in answers:
        made_at_s.append(now_s)
        wait_s = retry_delay_s(len(made_at_s), jitter=jitter, retry_after_s=asked_s)
        if wait_s is None:
            break
        gap_s = OFFSETS_S[len(made_at_s)] - OFFSETS_S[len(made_at_s) - 1]
        asked_s = min(asked_s or 0.0, 86_400.0)
        assert max(0.8 * gap_s, asked_s) - 1e-6 <= wait_s <= max(1.2 * gap_s, asked_s) + 1e-6
        now_s += wait_s
    # Eight attempts, the last one a day after the first; a week when the receiver asks for a day each time.
    assert len(made_at_s) == len(OFFSETS_S)
    asking = any(asked_s for _, asked_s in answers[:7])
    assert 0.8 * 86_400 - 1e-3 <= made_at_s[-1] <= (7 * 86_400 * 1.2 if asking else 1.2 * 86_400) + 1e-3


def test_another_schedule() -> None:
    assert retry_delay_s(1, jitter=0.5, offsets_s=(0, 2)) == 2
    assert retry_delay_s(2, jitter=0.5, offsets_s=(0, 2)) is None


@pytest.mark.parametrize(
    ("value", "date", "expected_s"),
    [
        (None, None, None),
        ("120", None, 120),
        (" 7 ", None, 7),
        ("0", None, 0),
        ("9" * 30, None, 86_400),
        ("-5", None, None),
        ("1.5", None, None),
        ("١٢", None, None),
        ("", None, None),
        ("soon", None, None),
        ("Sun, 01 Mar 2026 12:02:00 GMT", None, 120),
        ("Sun, 01 Mar 2026 11:00:00 GMT", None, 0),
        # Its clock is an hour slow; what it means is a minute.
        ("Sun, 01 Mar 2026 11:01:00 GMT", "Sun, 01 Mar 2026 11:00:00 GMT", 60),
        ("Sun, 01 Mar 2026 12:02:00 GMT", "yesterday", 120),
        ("Sun, 01 Mar 2026 17:32:00 +0530", None, 120),
        ("Sun, 01 Mar 2026 12:02:00 -0000", None, 120),
        ("Sun, 99 Mar 2026 12:02:00 GMT", None, None),
        ("Sun, 01 Mar 99999999999 12:02:00 GMT", None, None),
    ],
)
def test_retry_after(value: str | None, date: str | None, expected_s: float | None) -> None:
    assert retry_after_s(value, date, NOW) == expected_s


# Answers.


def test_only_2xx_takes_an_event() -> None:
    assert [status for status in range(100, 600) if is_success(status)] == list(range(200, 300))
    assert [status for status in range(100, 600) if is_gone(status)] == [410]


# Queries.


def query_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query, keep_blank_values=True, strict_parsing=True))


def body_of(**data: Any) -> bytes:
    fields = {"event": "call.ringing", "event_id": "event-1", "sequence": 2, "data": data}
    return json.dumps(fields).encode()


def test_fields_of_a_get_are_flat() -> None:
    body = body_of(
        **{"from": "+911140000001"},
        price=1.5,
        record=True,
        muted=False,
        tag=None,
        stream={"stream_sid": "s"},
        list=[1],
        empty="",
        text="a b&c=d#e é",
    )
    assert query_of(query_url(event(body, method="GET"))) == {
        "event": "call.ringing",
        "event_id": "event-1",
        "sequence": "2",
        "from": "+911140000001",
        "price": "1.5",
        "record": "true",
        "muted": "false",
        "empty": "",
        "text": "a b&c=d#e é",
    }


def test_the_events_own_fields_are_not_overwritten_by_its_data() -> None:
    assert query_of(query_url(event(body_of(event="other"), method="GET")))["event"] == "call.ringing"


def test_the_customers_query_stays_as_it_was_written() -> None:
    url = "https://hooks.example.com/x?token=a%2Fb+c;d&flag&e=#top"
    found = query_url(event(b'{"a":1}', url=url, method="GET"))
    assert found == "https://hooks.example.com/x?token=a%2Fb+c;d&flag&e=&a=1"


# Destinations.


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://Hooks.Example.com/a", "https://hooks.example.com:443"),
        ("https://hooks.example.com.:443/b?c", "https://hooks.example.com:443"),
        ("https://user:secret@hooks.example.com", "https://hooks.example.com:443"),
        ("http://hooks.example.com", "http://hooks.example.com:80"),
        ("http://hooks.example.com:8080", "http://hooks.example.com:8080"),
        ("https://[::1]:99999/", "https://[::1]:99999/"),
    ],
)
def test_origins(url: str, expected: str) -> None:
    assert origin(url) == expected
