"""Shapes of recordings in Twilio's interface."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from api.schemas.base import ResponseModel
from api.schemas.common import EndDate, StartDate
from api.schemas.twilio_api.base import Moment, TwilioCursorQuery, TwilioPage, TwilioQuery, unavailable

__all__ = ["TwilioRecording", "TwilioRecordingList", "TwilioRecordingQuery", "TwilioRecordingsOfCallQuery"]


class TwilioRecording(ResponseModel):
    """A recording of a call, in the shape of Twilio's recording resource."""

    sid: Annotated[str, Field(description="That of its call, which has one recording.")]
    account_sid: str
    call_sid: str
    conference_sid: None
    status: Literal["in-progress", "paused", "completed", "absent"]
    date_created: Annotated[Moment, Field(description="End of the call; before it, its answer.")]
    date_updated: Moment
    start_time: Moment
    duration: Annotated[str, Field(description="Seconds of the call from its answer.")] | None
    channels: None
    source: None
    price: None
    price_unit: str
    error_code: None
    encryption_details: None
    api_version: Literal["2010-04-01"]
    media_url: Annotated[str, Field(description="Path of the file, for the same credentials.")]
    uri: str


class TwilioRecordingQuery(TwilioCursorQuery):
    """Filters of a list of recordings."""

    not_accepted: ClassVar[Mapping[str, str]] = unavailable("ConferenceSid", "IncludeSoftDeleted")

    CallSid: str | None = None
    on: Annotated[StartDate | None, Field(alias="DateCreated")] = None
    before: Annotated[EndDate | None, Field(alias="DateCreated<")] = None
    after: Annotated[StartDate | None, Field(alias="DateCreated>")] = None


class TwilioRecordingsOfCallQuery(TwilioQuery):
    """Page of the recordings of a call."""

    not_accepted: ClassVar[Mapping[str, str]] = unavailable(
        "DateCreated", "DateCreated<", "DateCreated>", "PageToken"
    )


class TwilioRecordingList(TwilioPage):
    """Page of a list of recordings, newest first."""

    recordings: list[TwilioRecording]
