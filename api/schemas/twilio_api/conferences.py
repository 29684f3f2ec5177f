"""Forms and shapes of conferences in Twilio's interface."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import QueryText
from api.schemas.twilio_api.base import Flag, Moment, TwilioPage, TwilioQuery, unavailable
from callcontrol.errors import FieldError

__all__ = [
    "EndTwilioConference",
    "TwilioConference",
    "TwilioConferenceList",
    "TwilioConferenceQuery",
    "TwilioParticipant",
    "TwilioParticipantList",
    "TwilioParticipantQuery",
    "UpdateTwilioParticipant",
]

_DATES = ("DateCreated", "DateCreated<", "DateCreated>", "DateUpdated", "DateUpdated<", "DateUpdated>")


class TwilioConference(ResponseModel):
    """A conference that goes on, in the shape of Twilio's conference resource."""

    sid: str
    account_sid: str
    friendly_name: str
    status: Annotated[
        Literal["init", "in-progress", "completed"],
        Field(description="init: its members wait for one who starts it."),
    ]
    region: None
    reason_conference_ended: None
    call_sid_ending_conference: None
    date_created: Moment
    date_updated: Moment
    api_version: Literal["2010-04-01"]
    uri: str
    subresource_uris: dict[str, str]


class TwilioParticipant(ResponseModel):
    """A call in a conference, in the shape of Twilio's participant resource."""

    account_sid: str
    call_sid: str
    conference_sid: str
    label: None
    status: Literal["connected"]
    muted: bool
    hold: bool
    coaching: Literal[False]
    call_sid_to_coach: None
    queue_time: None
    start_conference_on_enter: bool
    end_conference_on_exit: bool
    date_created: Moment
    date_updated: Moment
    api_version: Literal["2010-04-01"]
    uri: str


class EndTwilioConference(RequestModel):
    """End of a conference."""

    not_accepted: ClassVar[Mapping[str, str]] = unavailable("AnnounceUrl", "AnnounceMethod")

    Status: Literal["completed"]


class UpdateTwilioParticipant(RequestModel):
    """Change of a participant."""

    not_accepted: ClassVar[Mapping[str, str]] = unavailable(
        *("AnnounceMethod", "AnnounceUrl", "BeepOnExit", "CallSidToCoach", "Coaching"),
        *("EndConferenceOnExit", "HoldMethod", "HoldUrl", "WaitMethod", "WaitUrl"),
    )

    Muted: Annotated[Flag, Field(description="The others do not hear it.")] | None = None
    Hold: (
        Annotated[Flag, Field(description="It hears music, and neither hears the others nor they it.")] | None
    ) = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Require a change."""
        return [] if given else [FieldError("Muted", "is required, unless Hold changes the participant")]


class TwilioConferenceQuery(TwilioQuery):
    """Filters of a list of conferences."""

    not_accepted: ClassVar[Mapping[str, str]] = unavailable(*_DATES, "PageToken")

    FriendlyName: QueryText | None = None
    Status: Literal["init", "in-progress", "completed"] | None = None


class TwilioParticipantQuery(TwilioQuery):
    """Filters of a list of participants."""

    not_accepted: ClassVar[Mapping[str, str]] = unavailable("Coaching", "PageToken")

    Muted: Flag | None = None
    Hold: Flag | None = None


class TwilioConferenceList(TwilioPage):
    """Page of a list of conferences, the latest first."""

    conferences: list[TwilioConference]


class TwilioParticipantList(TwilioPage):
    """Page of a list of participants, in the order in which they came."""

    participants: list[TwilioParticipant]
