"""Request and response models of masked calls."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.calls import CallStatusName
from api.schemas.common import Timestamp
from callcontrol.e164 import MAX_NUMBER_CHARS
from callcontrol.errors import FieldError, InvalidNumbers, ValidationFailed
from callcontrol.masking.calls import MaskedStatus
from callcontrol.masking.parties import MAX_DURATION_S, MIN_DURATION_S, number_errors

__all__ = [
    "LegObject",
    "MaskedCallObject",
    "Party",
    "StartMaskedCall",
    "StartedMaskedCallObject",
    "TwoParties",
]

_PARTIES = ("party_a", "party_b")

Party = Annotated[
    str,
    Field(
        max_length=MAX_NUMBER_CHARS,
        description="An Indian mobile number, in any common writing.",
        examples=["9812345678", "+919812345678"],
    ),
]


class TwoParties(RequestModel):
    """A body that names two parties, as ``party_a`` and ``party_b``."""

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Check that the two numbers can be connected."""
        return number_errors(given.get("party_a"), given.get("party_b"))

    @classmethod
    def refusal(
        cls, given: Mapping[str, Any], errors: Sequence[FieldError], message: str
    ) -> ValidationFailed:
        """Use the code of invalid numbers if nothing else is wrong."""
        numbers = all(isinstance(given.get(party), str) for party in _PARTIES)
        if numbers and all(error.field in _PARTIES for error in errors):
            return InvalidNumbers(errors, message)
        return ValidationFailed(errors, message)


class StartMaskedCall(TwoParties):
    """Two parties to connect; neither sees the other's number."""

    party_a: Annotated[Party, Field(description="Party called first: an Indian mobile number.")]
    party_b: Annotated[Party, Field(description="Party called when party_a has answered; another number.")]
    max_duration_sec: Annotated[
        int | None,
        Field(
            ge=MIN_DURATION_S,
            le=MAX_DURATION_S,
            description="Maximum duration from party_b's answer; unlimited when omitted.",
        ),
    ] = None


class StartedMaskedCallObject(ResponseModel):
    """An accepted masked call; its first party is being called."""

    call_sid: str
    status: MaskedStatus
    party_a: str
    party_b: str
    masked_number: Annotated[str, Field(description="Number that both parties see, in E.164.")]


class LegObject(ResponseModel):
    """State of one of the two parties."""

    party: Literal["a", "b"]
    status: CallStatusName
    answered_at: Timestamp | None
    hangup_cause: str | None


class MaskedCallObject(ResponseModel):
    """A call between two parties that see one of your numbers instead of each other's."""

    id: str
    platform_call_sid: str
    session_id: Annotated[str | None, Field(description="The masking session it was routed by, if any.")]
    caller_number: Annotated[str, Field(description="Who is called first, or called; in E.164.")]
    target_number: Annotated[
        str | None, Field(description="The other party, Indian numbers without country code.")
    ]
    masked_number: str
    direction: Literal["click_to_call", "inbound"]
    status: MaskedStatus
    legs: list[LegObject]
    max_duration_sec: int | None
    started_at: Timestamp
    answered_at: Annotated[
        str | None,
        Field(
            description="When both parties were connected.",
            json_schema_extra={"format": "date-time"},
        ),
    ]
    ended_at: Timestamp | None
    duration_sec: Annotated[int | None, Field(description="From answered_at to ended_at.")]
    bill_duration_sec: Annotated[
        int | None, Field(description="Seconds of the started pulses from answered_at to ended_at.")
    ]
    hangup_cause: str | None
    price: float | None
    currency: str
    recording_url: str | None
