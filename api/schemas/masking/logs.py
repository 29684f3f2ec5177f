"""Request and response models of the logs, statistics, billing and settings of number masking."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import EndDate, Id, Page, PeriodRequest, PerPage, QueryNumber, StartDate, Timestamp
from api.schemas.forms import WebUrl
from callcontrol.egress.url_policy import WEB_SCHEMES
from callcontrol.errors import FieldError
from callcontrol.masking.calls import MaskedStatus
from callcontrol.webhooks.subscriptions import MAX_SECRET_CHARS, MIN_SECRET_CHARS, secret_errors

__all__ = [
    "MaskedCallList",
    "MaskingBillingObject",
    "MaskingSettingsObject",
    "MaskingStatsObject",
    "MaskingStatsQuery",
    "UpdateMaskingSettings",
]


class MaskedCallList(PeriodRequest):
    """Filters of a list of masked calls."""

    status: MaskedStatus | None = None
    direction: Literal["click_to_call", "inbound"] | None = None
    party: Annotated[
        QueryNumber | None, Field(description="A number of either party, in any common writing.")
    ] = None
    session_id: Id | None = None
    start_date: StartDate | None = None
    end_date: EndDate | None = None
    page: Page = 1
    per_page: PerPage = 20


class MaskingStatsQuery(PeriodRequest):
    """Window of the statistics; default: the last 30 days."""

    start_date: StartDate | None = None
    end_date: EndDate | None = None


class WindowObject(ResponseModel):
    """A period of time, both ends included."""

    start: Timestamp
    end: Timestamp


class MaskingStatsObject(ResponseModel):
    """Usage of masking in a window, by the start of calls and the creation of sessions."""

    period: WindowObject
    total_sessions: int
    active_sessions: Annotated[int, Field(description="Of total_sessions, those that are active now.")]
    total_mappings: Annotated[int, Field(description="Of total_sessions; a session has two.")]
    total_calls: int
    answered_calls: Annotated[int, Field(description="Whose parties were connected.")]
    failed_calls: Annotated[int, Field(description="Which ended with the status failed.")]
    no_answer_calls: Annotated[int, Field(description="Which ended with the status no-answer.")]
    in_progress_calls: Annotated[int, Field(description="Which have not ended.")]
    total_minutes: Annotated[float, Field(description="The sum of bill_duration_sec, in minutes.")]
    total_cost: Annotated[float, Field(description="What calls that have ended were charged, in rupees.")]
    currency: str


class MaskingBillingObject(ResponseModel):
    """The balance that pays for masked calls."""

    wallet_balance: Annotated[float, Field(description="In rupees; active calls are not charged yet.")]
    currency: str
    updated_at: Timestamp


class UpdateMaskingSettings(RequestModel):
    """Settings to change; omitted fields keep their values, null removes a URL or the secret."""

    webhook_url: Annotated[WebUrl | None, Field(description="URL for events of masked calls.")] = None
    webhook_secret: Annotated[
        str | None,
        Field(
            min_length=MIN_SECRET_CHARS,
            max_length=MAX_SECRET_CHARS,
            repr=False,
            json_schema_extra={"writeOnly": True},
            description=(
                "Secret that signs them; null: the webhook secret of the account. Never shown. Libraries for"
                " Standard Webhooks need whsec_ and base64; what follows whsec_ must be base64."
            ),
        ),
    ] = None
    webhook_active: Annotated[bool, Field(description="false pauses the webhook.")] = True
    routing_url: Annotated[
        WebUrl | None,
        Field(description="URL that routes inbound calls without a session."),
    ] = None
    record_calls: Annotated[bool, Field(description="Record masked calls; a session can override it.")] = True

    urls = dict.fromkeys(("webhook_url", "routing_url"), WEB_SCHEMES)

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the secret."""
        errors = secret_errors(sound["webhook_secret"]) if "webhook_secret" in sound else []
        return [FieldError("webhook_secret", error.message) for error in errors]


class MaskingSettingsObject(ResponseModel):
    """The account's settings of masked calls."""

    webhook_url: str | None
    has_webhook_secret: Annotated[bool, Field(description="Whether the webhook has a secret of its own.")]
    webhook_active: Annotated[
        bool,
        Field(description="false: paused, by yourself or because its server answered 410."),
    ]
    routing_url: str | None
    record_calls: bool
    updated_at: Annotated[
        str | None, Field(json_schema_extra={"format": "date-time"}, description="null: never changed.")
    ]
