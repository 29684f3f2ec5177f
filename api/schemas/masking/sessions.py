"""Request and response models of masking sessions and masked numbers."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import E164, Language, Page, PerPage, QueryNumber, Timestamp
from api.schemas.masking.calls import Party, TwoParties
from callcontrol.errors import FieldError
from callcontrol.masking.parties import MAX_DURATION_S, MIN_DURATION_S, NOT_A_MOBILE, mobile_of
from callcontrol.masking.sessions import DEFAULT_EXPIRY_S, MAX_EXPIRY_S, MIN_EXPIRY_S, SessionStatus
from callcontrol.numbers.binding import target_errors

__all__ = [
    "ChangeSession",
    "CreateSession",
    "EnrolNumber",
    "MaskedNumberList",
    "MaskedNumberObject",
    "SessionList",
    "SessionObject",
    "WithdrawNumber",
]

Expiry = Annotated[
    int, Field(ge=MIN_EXPIRY_S, le=MAX_EXPIRY_S, description="In how many seconds it expires, from now.")
]
Limit = Annotated[
    int,
    Field(
        ge=MIN_DURATION_S,
        le=MAX_DURATION_S,
        description="How long each call may last once it is answered; null is no limit.",
    ),
]
Record = Annotated[
    bool, Field(description="Whether calls are recorded; null is what the masking settings say.")
]


def _party(text: str) -> str:
    number = mobile_of(text)
    if number is None:
        raise ValueError(NOT_A_MOBILE)
    return number


class CreateSession(TwoParties):
    """Two parties that can reach each other by a masked number."""

    party_a: Party
    party_b: Annotated[Party, Field(description="An Indian mobile number; another one.")]
    masked_number: Annotated[
        E164 | None, Field(description="An enrolled number; one that is free is chosen when left out.")
    ] = None
    expires_in_sec: Expiry = DEFAULT_EXPIRY_S
    call_time_limit_sec: Limit | None = None
    record: Record | None = None
    geo_match: Annotated[
        bool, Field(description="Choose a number that begins like party_a's, as far as there is one.")
    ] = False


class ChangeSession(RequestModel):
    """Fields of a session to change; omitted fields keep their values."""

    not_accepted: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("party_a", "party_b", "masked_number", "geo_match"),
        "cannot be changed; close the session, and create another one",
    )

    expires_in_sec: Expiry | None = None
    call_time_limit_sec: Limit | None = None
    record: Record | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse an empty change, and a session without expiry."""
        if not given:
            return [FieldError("body", "must have expires_in_sec, call_time_limit_sec or record")]
        if "expires_in_sec" in given and given["expires_in_sec"] is None:
            return [FieldError("expires_in_sec", "must be a whole number; every session expires")]
        return []


class SessionList(RequestModel):
    """Filters of a list of sessions."""

    status: SessionStatus | None = None
    party: Annotated[QueryNumber, AfterValidator(_party)] | None = None
    masked_number: QueryNumber | None = None
    page: Page = 1
    per_page: PerPage = 20


class MappingObject(ResponseModel):
    """Caller and target of a call to the masked number; numbers are in E.164."""

    caller_number: str
    masked_number: str
    target_number: str


class SessionObject(ResponseModel):
    """Two parties that reach each other by a masked number until the session ends."""

    session_id: str
    status: SessionStatus
    masked_number: Annotated[str, Field(description="Number that the parties call and see, in E.164.")]
    party_a: str
    party_b: str
    mappings: list[MappingObject]
    call_time_limit_sec: int | None
    record: bool | None
    geo_match: bool
    expires_at: Timestamp
    ended_at: Annotated[Timestamp | None, Field(description="When it was closed, or had expired.")]
    created_at: Timestamp
    updated_at: Timestamp


class EnrolNumber(RequestModel):
    """A number of the account to use for masking."""

    number: Annotated[E164, Field(description="A number of the account.")]
    language: (
        Annotated[
            Language,
            Field(description="In which unknown callers are told: en, hi, bn, gu, kn, ml, mr, pa, ta or te."),
        ]
        | None
    ) = None
    force: Annotated[bool, Field(description="Take over a number whose calls are bound elsewhere.")] = False

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the language."""
        return target_errors("masking", {"language": sound["language"]}) if "language" in sound else []


class MaskedNumberList(RequestModel):
    """Page of the enrolled numbers."""

    page: Page = 1
    per_page: PerPage = 20


class WithdrawNumber(RequestModel):
    """Query of a number's withdrawal from masking."""

    force: Annotated[bool, Field(description="Close active sessions on the number.")] = False


class MaskedNumberObject(ResponseModel):
    """A number enrolled for masking."""

    phone_number_id: str
    number: Annotated[str, Field(description="E.164.")]
    language: str
    status: Literal["active", "suspended", "pending", "released"]
    created_at: Timestamp
