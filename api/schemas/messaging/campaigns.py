"""Request and response models of campaigns."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from api.schemas.common import Filled, Page, PerPage, Timestamp
from api.schemas.messaging.base import CamelQuery, CamelRequest, CamelResponse
from callcontrol.aio.tokens import utc_now
from callcontrol.e164 import MAX_NUMBER_CHARS
from callcontrol.errors import FieldError
from callcontrol.messaging.campaigns import (
    MAX_NAME_CHARS,
    MAX_RECIPIENTS,
    MAX_VALUE_CHARS,
    schedule_errors,
    wrong_recipients,
)
from callcontrol.messaging.models import CampaignStatus

__all__ = ["CampaignList", "CampaignObject", "CreateCampaign", "CreatedCampaign"]

_FEW = 20
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _moment(value: Any) -> datetime:
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        try:
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise ValueError("must be RFC 3339 with an offset, 2026-01-31T12:00:00Z or 2026-01-31T17:30:00+05:30")


_Moment = Annotated[datetime, BeforeValidator(_moment)]
_Value = Annotated[Filled, Field(max_length=MAX_VALUE_CHARS)]
_Number = Annotated[str, Field(max_length=MAX_NUMBER_CHARS)]
_Count = Annotated[int, Field(ge=0)]


class CreateCampaign(CamelRequest):
    """One approved template for up to 1000 recipients."""

    template_name: Annotated[Filled, Field(max_length=512, description="An approved template.")]
    language: (
        Annotated[str, Field(min_length=2, max_length=16, description="Of the template; default en_US.")]
        | None
    ) = None
    campaign_name: Annotated[Filled, Field(max_length=MAX_NAME_CHARS)]
    phone_numbers: Annotated[
        list[_Number],
        Field(min_length=1, max_length=MAX_RECIPIENTS, description="Recipients; each gets one message."),
    ]
    variables: Annotated[
        dict[str, _Value],
        Field(description="The template's {{1}} is named 1, and so on; all of them and no others."),
    ] = {}
    send_immediately: Annotated[
        bool, Field(description="false without scheduledFor makes a draft, which is sent by a later request.")
    ] = True
    scheduled_for: Annotated[_Moment, Field(description="RFC 3339, within 90 days.")] | None = None

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the start time and the recipients."""
        errors: list[FieldError] = []
        if "scheduledFor" in sound:
            errors += schedule_errors(_moment(sound["scheduledFor"]), utc_now())
        # Reading a thousand numbers at once would hold up calls; the service does it in slices.
        numbers = sound.get("phoneNumbers", ())
        if 0 < len(numbers) <= _FEW:
            errors += wrong_recipients(numbers)
        return errors


class CampaignList(CamelQuery):
    """Filter and page of the list of campaigns."""

    status: CampaignStatus | None = None
    page: Page = 1
    page_size: PerPage = 50


class CampaignTally(CamelResponse):
    """Number of messages in each state; the sum is always the total."""

    queued: _Count
    sent: _Count
    delivered: _Count
    read: _Count
    failed: _Count
    cancelled: _Count


class CampaignObject(CamelResponse):
    """A campaign and its progress."""

    campaign_id: int
    campaign_name: str
    template_name: str
    language: str
    status: CampaignStatus
    total: Annotated[int, Field(description="To how many it goes.")]
    counts: CampaignTally
    progress: Annotated[float, Field(ge=0, le=100, description="Percent that has left, or will not leave.")]
    created_at: Timestamp
    scheduled_for: Timestamp | None
    started_at: Timestamp | None
    completed_at: Timestamp | None
    cancelled_at: Timestamp | None
    estimated_completion_at: Annotated[
        Timestamp | None, Field(description="When the last message will have left, by the pace so far.")
    ]


class CreatedCampaign(CampaignObject):
    """An accepted campaign, and its duplicate and invalid numbers as given."""

    duplicates: Annotated[list[str], Field(description="Given more than once; each still gets one message.")]
    invalid: Annotated[list[str], Field(description="No telephone numbers.")]
    opted_out: Annotated[list[str], Field(description="Numbers of contacts who have opted out.")]
