"""
Spoken one-time passwords: limits of requests, rate limit, and verification.

The password itself is in memory only, in the request and in the announcement of the call. The database stores
a keyed digest: with so few digits, any other digest could be reversed by trying them all.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal

from callcontrol.errors import FieldError, RateLimited, ValidationFailed
from callcontrol.models import CallRecord, CallStatus
from callcontrol.routing.targets import is_answered_by_somebody
from callcontrol.wallet.money import rupees
from media.audio import Clip, Pause, Sound

MIN_DIGITS, MAX_DIGITS, DEFAULT_DIGITS = 4, 8, 6
MAX_REPEAT, DEFAULT_REPEAT = 5, 2
MIN_TTL_S, MAX_TTL_S, DEFAULT_TTL_S = 30, 3600, 300
MAX_TEMPLATE_CHARS: Final = 300
PLACEHOLDER: Final = "{otp}"

MAX_ATTEMPTS: Final = 5
"""Guesses per password: with six digits, one attacker in two hundred thousand finds it."""

PER_DESTINATION: Final = 5
WINDOW: Final = timedelta(minutes=10)
"""Period in which an account may call one number ``PER_DESTINATION`` times, however the calls end."""

DEFAULT_PERIOD_DAYS: Final = 30
MAX_PERIOD_DAYS: Final = 366

_CODE = re.compile(r"[0-9]{4,8}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MANY_DIGITS = re.compile(r"\d{4}")
_ROUND_MARGIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SendOtp:
    """
    A request to speak a password.

    ``code`` None means a generated one with ``length`` digits. ``template`` is a sentence with ``{otp}`` in
    it, instead of the usual one. ``from_`` None means the oldest registered number of the account.
    """

    to: str
    code: str | None = field(default=None, repr=False)
    length: int = DEFAULT_DIGITS
    language: str = "en-IN"
    repeat: int = DEFAULT_REPEAT
    template: str | None = None
    from_: str | None = None
    ttl_s: int = DEFAULT_TTL_S
    status_webhook_url: str | None = None
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class OtpState:
    """The stored state of a password, without its call."""

    otp_id: str
    account_sid: str
    call_sid: str
    expires_at: datetime
    attempts: int
    verified_at: datetime | None = None
    code_hash: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class OtpCall:
    """A password and the call that speaks it."""

    state: OtpState
    record: CallRecord


@dataclass(frozen=True, slots=True)
class OtpFilter:
    """Filter of a list by time of sending and other fields; ``start`` is inclusive, ``end`` exclusive."""

    status: CallStatus | None = None
    to: str | None = None
    reference: str | None = None
    start: datetime | None = None
    end: datetime | None = None


# --- verifying a password -----------------------------------------------------------------------------------

Verdict = Literal["verified", "wrong", "expired", "used", "exhausted"]


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of a guess."""

    verdict: Verdict
    attempts_left: int

    @property
    def verified(self) -> bool:
        """True if the guess was the password."""
        return self.verdict == "verified"


def evaluate_guess(state: OtpState, matches: Callable[[bytes], bool], now: datetime) -> Verification:
    """
    Compare a guess with a password; a password that is used, exhausted or expired is not compared.

    ``matches`` returns True if a digest is that of the guess, in constant time. A password can be used once.
    """
    if state.verified_at is not None:
        return Verification("used", 0)
    if state.attempts >= MAX_ATTEMPTS:
        return Verification("exhausted", 0)
    if now >= state.expires_at or state.code_hash is None:  # the digest is deleted some time after expiry
        return Verification("expired", 0)
    if matches(bytes.fromhex(state.code_hash)):
        return Verification("verified", 0)
    return Verification("wrong", MAX_ATTEMPTS - state.attempts - 1)


def is_code(text: str) -> bool:
    """True if a text has the form of a password."""
    return _CODE.fullmatch(text) is not None


# --- rate limit ---------------------------------------------------------------------------------------------


def refusal_of(limiting: datetime | None, now: datetime) -> RateLimited | None:
    """
    The refusal of one more call to a number; None when the call is allowed.

    ``limiting`` is the time of the fifth latest call within the window, None when there were fewer.
    """
    if limiting is None:
        return None
    # A clock that was set back must not block a number for longer than the window.
    wait_s = min(limiting + WINDOW - now, WINDOW).total_seconds()
    return RateLimited(
        f"This number was sent {PER_DESTINATION} passwords within {WINDOW.total_seconds() / 60:.0f} minutes;"
        " wait for Retry-After.",
        retry_after_s=max(1.0, wait_s),
    )


# --- the callee and the announcement ------------------------------------------------------------------------


def callee_errors(number: str) -> list[FieldError]:
    """The error of a number in E.164 that is no subscriber's."""
    if is_answered_by_somebody(number):
        return []
    # An automatic menu cannot use a password; these calls only cost or earn someone money.
    return [FieldError("to", "must be a subscriber's number, not toll-free or of a service")]


def wording_errors(language: str | None, template: str | None, spoken: Collection[str]) -> list[FieldError]:
    """Errors of the language and the template, as far as they are given; ``spoken`` are the languages."""
    errors: list[FieldError] = []
    if language is not None and language.lower().partition("-")[0] not in spoken:
        errors.append(
            FieldError("language", f"is not spoken; these are, with any region: {', '.join(spoken)}")
        )
    if template is not None:
        try:
            split_template(template)
        except ValidationFailed as refusal:
            errors += refusal.errors
    return errors


def split_template(template: str) -> tuple[str, str]:
    """
    The text before and after the digits.

    Raises:
        ValidationFailed: It does not have ``{otp}`` exactly once, or has other braces or digits of its own.
    """
    before, placeholder, behind = template.partition(PLACEHOLDER)
    words = before + behind
    if not placeholder or "{" in words or "}" in words:
        raise ValidationFailed.of("template", f"must have {PLACEHOLDER} in it once, and no other braces")
    if _MANY_DIGITS.search(words):
        # Templates are not kept secret; a password in one shows that its author misread the field.
        raise ValidationFailed.of("template", f"must not have a number in it; {PLACEHOLDER} is the password")
    return before.strip(), behind.strip()


def time_limit_s(sounds: Sequence[Sound], times: int) -> float:
    """
    Time limit, in seconds, of a call that repeats its announcement ``times``.

    ``times`` includes the repeats that the party may ask for with a key.
    """
    round_ms = sum(sound.duration_ms for sound in sounds if isinstance(sound, Clip | Pause))
    return times * (round_ms / 1000 + 1.0) + _ROUND_MARGIN_S


# --- statistics ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Period:
    """A period of days, both included, in UTC."""

    first: date
    last: date


def period_of(first: str | None, last: str | None, today: date) -> Period:
    """
    The period between two dates; the thirty days up to today when both are None.

    Raises:
        ValidationFailed: A text is no date, or the days are in the wrong order or too many.
    """
    errors: list[FieldError] = []
    begin, end = _day("start_date", first, errors), _day("end_date", last, errors)
    if errors:
        raise ValidationFailed(errors)
    end = end or today
    if begin is None:
        begin = date.fromordinal(max(1, end.toordinal() - DEFAULT_PERIOD_DAYS + 1))
    if begin > end:
        raise ValidationFailed.of(
            "end_date", "must not be before start_date; without end_date it is today in UTC"
        )
    if (end - begin).days >= MAX_PERIOD_DAYS:
        raise ValidationFailed.of("start_date", f"must be within {MAX_PERIOD_DAYS} days of end_date")
    return Period(begin, end)


def _day(name: str, text: str | None, errors: list[FieldError]) -> date | None:
    if text is None:
        return None
    try:
        if _DAY.fullmatch(text):  # the reader below takes weeks as well
            return date.fromisoformat(text)
    except ValueError:
        pass
    errors.append(FieldError(name, "must be a date, YYYY-MM-DD"))
    return None


@dataclass(frozen=True, slots=True)
class OtpStats:
    """Statistics of the calls of a period; every call is counted under one of the statuses."""

    total: int = 0
    answered: int = 0
    completed: int = 0
    failed: int = 0
    no_answer: int = 0
    busy: int = 0
    canceled: int = 0
    in_progress: int = 0
    verified: int = 0
    duration_sec: int = 0
    cost_paise: int = 0


def stats_object(period: Period, stats: OtpStats, currency: str) -> dict[str, Any]:
    """The statistics as a JSON object."""
    return {
        "period": {"start": period.first.isoformat(), "end": period.last.isoformat()},
        "total_calls": stats.total,
        "answered_calls": stats.answered,
        "completed_calls": stats.completed,
        "failed_calls": stats.failed,
        "no_answer_calls": stats.no_answer,
        "busy_calls": stats.busy,
        "canceled_calls": stats.canceled,
        "in_progress_calls": stats.in_progress,
        "verified_calls": stats.verified,
        "total_duration_sec": stats.duration_sec,
        "total_cost": rupees(stats.cost_paise),
        "currency": currency,
    }
