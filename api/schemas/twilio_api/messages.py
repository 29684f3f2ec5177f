"""Forms and shapes of messages in Twilio's interface."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from api.schemas.base import Reach, RequestModel, ResponseModel
from api.schemas.common import E164, Filled, QueryNumber
from api.schemas.twilio_api.base import Moment, TwilioPage, TwilioQuery, unavailable
from callcontrol.errors import FieldError
from callcontrol.messaging.messages import MAX_TEXT, media_url_errors
from callcontrol.messaging.models import MessageStatus

__all__ = ["CreateTwilioMessage", "TwilioMessage", "TwilioMessageList", "TwilioMessageQuery"]

_CHAT = "whatsapp:"

# Twilio's programs write so the numbers of this network.
_Unprefixed = BeforeValidator(lambda text: text.removeprefix(_CHAT) if isinstance(text, str) else text)


class CreateTwilioMessage(RequestModel):
    """Send a message, as Twilio's clients do."""

    not_accepted: ClassVar[Mapping[str, str]] = unavailable(
        *("AddressRetention", "ApplicationSid", "Attempt", "ContentRetention", "ContentSid"),
        *("ContentVariables", "ForceDelivery", "MaxPrice", "MessagingServiceSid", "PersistentAction"),
        *("ProvideFeedback", "RiskCheck", "ScheduleType", "SendAsMms", "SendAt", "ShortenUrls"),
        *("SmartEncoded", "StatusCallback", "TrafficType", "ValidityPeriod"),
    )

    To: Annotated[E164, _Unprefixed]
    From: Annotated[E164, _Unprefixed, Field(description="Number of the account's channel.")]
    Body: Annotated[Annotated[Filled, Field(max_length=MAX_TEXT)] | None, Field(repr=False)] = None
    MediaUrl: (
        Annotated[str, Field(max_length=2048, description="One file; the Body is its caption.")] | None
    ) = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Require a text or a file."""
        if given.get("Body") is not None or given.get("MediaUrl") is not None:
            return []
        return [FieldError("Body", "is required, unless MediaUrl names a file")]

    @classmethod
    def unreachable(cls, given: Mapping[str, Any], reach: Reach) -> list[FieldError]:
        """Errors of the host of the file."""
        url = given.get("MediaUrl")
        return media_url_errors("MediaUrl", url, reach.rules.check_url) if isinstance(url, str) else []


class TwilioMessage(ResponseModel):
    """A message, in the shape of Twilio's message resource."""

    sid: str
    account_sid: str
    from_: Annotated[str, Field(alias="from")]
    to: str
    body: str
    status: MessageStatus
    direction: Literal["inbound", "outbound-api"]
    num_media: str
    num_segments: str
    error_code: Annotated[int | None, Field(description="Twilio's code of the reason.")]
    error_message: str | None
    messaging_service_sid: None
    price: None
    price_unit: str
    date_created: Moment
    date_sent: Moment | None
    date_updated: Moment
    api_version: Literal["2010-04-01"]
    uri: str
    subresource_uris: dict[str, str]


class TwilioMessageQuery(TwilioQuery):
    """Filters of a list of messages."""

    not_accepted: ClassVar[Mapping[str, str]] = unavailable("DateSent", "DateSent<", "DateSent>", "PageToken")

    To: Annotated[QueryNumber, _Unprefixed] | None = None
    From: Annotated[QueryNumber, _Unprefixed] | None = None


class TwilioMessageList(TwilioPage):
    """Page of a list of messages, newest first."""

    messages: list[TwilioMessage]
