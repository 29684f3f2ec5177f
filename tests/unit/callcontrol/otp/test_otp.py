"""The rules of one-time passwords: guesses, limits, wording, days, and what is shown of them."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.errors import ValidationFailed
from callcontrol.models import CallRecord, CallStatus
from callcontrol.otp.otp import (
    MAX_ATTEMPTS,
    WINDOW,
    OtpState,
    Period,
    SendOtp,
    evaluate_guess,
    is_code,
    period_of,
    refusal_of,
    split_template,
    time_limit_s,
)
from callcontrol.otp.product import masked, otp_details, otp_object
from media.audio import Clip, Pause

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TODAY = NOW.date()


def state(**changes: object) -> OtpState:
    values: dict[str, object] = {
        "otp_id": "otp-1",
        "account_sid": "acc-1",
        "call_sid": "call-1",
        "expires_at": NOW + timedelta(minutes=5),
        "attempts": 0,
        "code_hash": b"right".hex(),
    }
    return OtpState(**{**values, **changes})  # type: ignore[arg-type]


def right(digest: bytes) -> bool:
    return digest == b"right"


def wrong(digest: bytes) -> bool:
    return False


def test_a_guess() -> None:
    assert evaluate_guess(state(), right, NOW).verified
    miss = evaluate_guess(state(), wrong, NOW)
    assert (miss.verdict, miss.verified, miss.attempts_left) == ("wrong", False, MAX_ATTEMPTS - 1)
    assert evaluate_guess(state(attempts=MAX_ATTEMPTS - 1), wrong, NOW).attempts_left == 0
    assert evaluate_guess(state(attempts=MAX_ATTEMPTS - 1), right, NOW).verified


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"verified_at": NOW}, "used"),
        ({"attempts": MAX_ATTEMPTS, "code_hash": None}, "exhausted"),
        ({"expires_at": NOW}, "expired"),
        ({"code_hash": None}, "expired"),
    ],
)
def test_a_password_that_is_over_is_compared_with_nothing(changes: dict[str, object], verdict: str) -> None:
    def must_not(digest: bytes) -> bool:
        raise AssertionError("compared")

    outcome = evaluate_guess(state(**changes), must_not, NOW)
    assert (outcome.verdict, outcome.verified, outcome.attempts_left) == (verdict, False, 0)


def test_what_is_secret_is_in_no_repr() -> None:
    assert "271828" not in repr(SendOtp(to="+919876543210", code="271828"))
    assert b"right".hex() not in repr(state())


@pytest.mark.parametrize(
    ("text", "good"), [("0000", True), ("12345678", True), ("123", False), ("1２34", False)]
)
def test_passwords_are_four_to_eight_plain_digits(text: str, good: bool) -> None:
    assert is_code(text) is good


def test_a_number_is_called_five_times_within_ten_minutes() -> None:
    assert refusal_of(None, NOW) is None
    refusal = refusal_of(NOW - timedelta(seconds=570), NOW)
    assert refusal is not None and refusal.retry_after_s == 30.0
    ahead = refusal_of(NOW + timedelta(hours=1), NOW)
    assert ahead is not None and ahead.retry_after_s == WINDOW.total_seconds(), "a clock was set back"


def test_a_template_is_parted_at_the_password() -> None:
    assert split_template("Your Acme code is {otp}. Thank you.") == ("Your Acme code is", ". Thank you.")
    assert split_template("{otp}") == ("", "")


@pytest.mark.parametrize("template", ["no place", "{otp} {otp}", "{otp} {name}", "Your code 1234 {otp}"])
def test_templates_that_are_mistakes(template: str) -> None:
    with pytest.raises(ValidationFailed):
        split_template(template)


def test_a_call_lasts_as_long_as_all_that_may_be_said() -> None:
    sounds = (Clip(b"\0\0" * 8000), Pause(500))
    assert time_limit_s(sounds, 7) == pytest.approx(7 * 2.5 + 10)


def test_the_days_of_statistics() -> None:
    assert period_of(None, None, TODAY) == Period(date(2026, 1, 31), TODAY)
    assert period_of("2026-02-01", None, TODAY) == Period(date(2026, 2, 1), TODAY)
    assert period_of(None, "2026-02-01", TODAY) == Period(date(2026, 1, 3), date(2026, 2, 1))
    assert period_of(None, "0001-01-02", TODAY).first == date.min
    assert period_of("2026-02-01", "2026-02-01", TODAY) == Period(date(2026, 2, 1), date(2026, 2, 1))


@pytest.mark.parametrize(
    ("first", "last", "fields"),
    [
        ("2026-02-30", None, ["start_date"]),
        ("yesterday", "20260201", ["start_date", "end_date"]),
        ("2026-02-02", "2026-02-01", ["end_date"]),
        ("2026-03-02", None, ["end_date"]),
        ("2025-01-01", "2026-01-02", ["start_date"]),
        ("2026-W01-1", None, ["start_date"]),
    ],
)
def test_days_that_are_none(first: str | None, last: str | None, fields: list[str]) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        period_of(first, last, TODAY)
    assert [error.field for error in refusal.value.errors] == fields


@given(st.text(max_size=12))
def test_no_text_breaks_the_reading_of_days(text: str) -> None:
    try:
        period = period_of(text, None, TODAY)
    except ValidationFailed:
        return
    assert period.first <= period.last


def record(status: CallStatus = CallStatus.QUEUED, **changes: object) -> CallRecord:
    details = otp_details("otp-1", language="hi-IN", repeat=2, reference="r", expires_at=NOW)
    made = CallRecord("call-1", "acc-1", "outbound", "+918047491899", "+919876543210", NOW, status)
    made.product, made.details, made.status_webhook_url = "otp", details, "https://customer.example/"
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_the_number_is_masked() -> None:
    assert masked("+919876543210") == "******3210"
    shown = otp_object(record())
    assert (shown["to"], shown["status"], shown["played_count"]) == ("******3210", "initiated", 0)


def told(made: CallRecord, event: str) -> str | None:
    sent = PRODUCTS.of(made).webhook_event(made, event, {}, event_id="e", at=NOW)
    if sent is None:
        return None
    body = json.loads(sent.body)
    assert body["event"] == sent.event and body["data"]["id"] == "otp-1"
    assert "9876543210" not in sent.body.decode()
    return sent.event


def test_events_have_names_of_their_own_whatever_was_chosen() -> None:
    made = record(status_webhook_events=())
    assert told(made, "call.initiated") == "otp.initiated"
    assert told(made, "call.ringing") is None and told(made, "call.dtmf") is None
    assert told(made, "call.answered") == "otp.answered"
    made.status = CallStatus.COMPLETED
    assert told(made, "call.completed") == "otp.completed"
    assert made.sequence == 3, "what is not told is not counted"


@pytest.mark.parametrize("status", [s for s in CallStatus if s.ended and s is not CallStatus.COMPLETED])
def test_every_other_end_is_a_failure(status: CallStatus) -> None:
    assert told(record(status), "call.completed") == "otp.failed"
