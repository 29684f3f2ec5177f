"""Request and response models of the voice OTP endpoints."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.calls import CallStatusName
from api.schemas.common import (
    E164,
    Day,
    EndDate,
    Language,
    Page,
    PeriodRequest,
    PerPage,
    QueryNumber,
    StartDate,
    Timestamp,
)
from api.schemas.forms import WebUrl
from callcontrol.e164 import read_number
from callcontrol.egress.url_policy import WEB_SCHEMES
from callcontrol.errors import FieldError
from callcontrol.numbers.binding import PROMPT_LANGUAGES
from callcontrol.otp import otp as domain

__all__ = [
    "OtpCallObject",
    "OtpList",
    "OtpStatsObject",
    "OtpStatsQuery",
    "SendOtp",
    "VerificationObject",
    "VerifyOtp",
]


def _code(text: str) -> str:
    if not domain.is_code(text):
        raise ValueError(f"must be {domain.MIN_DIGITS} to {domain.MAX_DIGITS} digits")
    return text


Code = Annotated[
    str,
    AfterValidator(_code),
    Field(json_schema_extra={"writeOnly": True, "pattern": "^[0-9]{4,8}$"}),
]
Status = Literal[
    "initiated", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"
]


class SendOtp(RequestModel):
    """A one-time password to speak to a called party."""

    to: Annotated[E164, Field(description="Number to call.")]
    # No repr contains the password, as requests appear in error reports.
    otp: Annotated[Code | None, Field(repr=False, description="4 to 8 digits; generated when omitted.")] = (
        None
    )
    length: Annotated[
        int,
        Field(ge=domain.MIN_DIGITS, le=domain.MAX_DIGITS, description="Length of a generated one."),
    ] = domain.DEFAULT_DIGITS
    language: Annotated[
        Language,
        Field(description="As in hi-IN: en, hi, bn, gu, kn, ml, mr, pa, ta or te, with any region."),
    ] = "en-IN"
    repeat: Annotated[int, Field(ge=1, le=domain.MAX_REPEAT, description="Number of repetitions.")] = (
        domain.DEFAULT_REPEAT
    )
    template: (
        Annotated[
            str,
            Field(
                max_length=domain.MAX_TEMPLATE_CHARS,
                json_schema_extra={"minLength": len(domain.PLACEHOLDER)},
                description="A sentence in that language with {otp} in it once, instead of the usual one.",
            ),
        ]
        | None
    ) = None
    from_: Annotated[
        E164 | None,
        Field(
            alias="from",
            description="A registered number of the account; the oldest one when left out.",
        ),
    ] = None
    ttl_sec: Annotated[
        int, Field(ge=domain.MIN_TTL_S, le=domain.MAX_TTL_S, description="Seconds for which it is valid.")
    ] = domain.DEFAULT_TTL_S
    status_webhook_url: WebUrl | None = None
    reference: (
        Annotated[str, Field(min_length=1, max_length=128, description="Your reference, returned unchanged.")]
        | None
    ) = None

    urls = {"status_webhook_url": WEB_SCHEMES}

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse a length that contradicts the password."""
        code, length = given.get("otp"), given.get("length")
        if isinstance(code, str) and isinstance(length, int) and domain.is_code(code) and len(code) != length:
            return [FieldError("length", "must be left out with otp, or be the number of its digits")]
        return []

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the callee, the language and the template."""
        errors = domain.callee_errors(read_number(sound["to"])) if "to" in sound else []
        return errors + domain.wording_errors(sound.get("language"), sound.get("template"), PROMPT_LANGUAGES)


class VerifyOtp(RequestModel):
    """A password to verify."""

    otp: Annotated[Code, Field(repr=False, description="What the user typed.")]


class OtpList(PeriodRequest):
    """Filters of a list of passwords."""

    status: CallStatusName | None = None
    to: QueryNumber | None = None
    reference: Annotated[str, Field(max_length=128)] | None = None
    start_date: StartDate | None = None
    end_date: EndDate | None = None
    page: Page = 1
    per_page: PerPage = 20


class OtpStatsQuery(RequestModel):
    """Days of the statistics; default: the thirty days up to today."""

    start_date: Day | None = None
    end_date: Day | None = None


class OtpCallObject(ResponseModel):
    """State of a one-time password and its call, without the password itself."""

    id: str
    call_sid: str
    to: Annotated[str, Field(description="Masked: ******3210.")]
    from_: Annotated[str, Field(alias="from")]
    status: Status
    language: str
    repeat: int
    played_count: Annotated[int, Field(description="Number of complete repetitions.")]
    reference: str | None
    created_at: Timestamp
    expires_at: Timestamp
    verified_at: Annotated[str | None, Field(json_schema_extra={"format": "date-time"})]
    answered_at: Timestamp | None
    ended_at: Timestamp | None
    duration_sec: int | None
    hangup_cause: str | None
    price: float | None
    currency: str


class VerificationObject(ResponseModel):
    """Result of a verification."""

    verified: bool
    attempts_left: int
    reason: Annotated[
        Literal["verified", "wrong", "expired", "used", "exhausted"],
        Field(description="exhausted: too many guesses; used: already verified."),
    ]


class PeriodObject(ResponseModel):
    """First and last day, both included."""

    start: str
    end: str


class OtpStatsObject(ResponseModel):
    """Statistics of the passwords of a period; each is counted under exactly one status."""

    period: PeriodObject
    total_calls: int
    answered_calls: int
    completed_calls: int
    failed_calls: int
    no_answer_calls: int
    busy_calls: int
    canceled_calls: int
    in_progress_calls: int
    verified_calls: int
    total_duration_sec: int
    total_cost: float
    currency: str
