"""Request and response models of the phone number endpoints."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from api.schemas.base import Reach, RequestModel, ResponseModel
from api.schemas.common import Name, Page, PerPage, Timestamp
from api.schemas.dids import NumberType, Region
from api.schemas.model import ModelFields
from api.schemas.serializers import shown
from api.schemas.streams import StreamFields
from callcontrol.e164 import MAX_NUMBER_CHARS
from callcontrol.errors import BindFailed, DomainError, FieldError, ValidationFailed
from callcontrol.models import NumberConfiguration, PhoneNumber
from callcontrol.numbers.binding import (
    BINDING_URLS,
    forward_to_errors,
    schemes_of,
    target_errors,
    value_errors,
)
from callcontrol.wallet.money import rupees

__all__ = [
    "Deregister",
    "DeregisteredObject",
    "InboundBinding",
    "NumberChange",
    "NumberList",
    "PhoneNumberObject",
    "WiringObject",
    "number_json",
    "wiring_json",
]


NumberStatus = Literal["active", "suspended", "released"]


class NumberList(RequestModel):
    """Filters of the list of numbers."""

    status: NumberStatus | None = None
    number_type: NumberType | None = None
    region: Region | None = None
    page: Page = 1
    per_page: PerPage = 20


class NumberChange(RequestModel):
    """Fields of a number that may change."""

    friendly_name: Annotated[Name | None, Field(description="The new label; null takes it away.")]


class Deregister(RequestModel):
    """Query of a deregistration."""

    force: Annotated[bool, Field(description="Deregister although inbound calls are still bound.")] = False


_STREAM_OPTIONS = StreamFields.model_fields.keys() - {"sample_rate"}


class InboundBinding(StreamFields):
    """
    Target of a number's inbound calls.

    The binding itself checks the fields of each target and their values (`bind_failed`).
    """

    target: Annotated[
        str,
        Field(
            max_length=32,
            description="voice_agent, webhook, media_stream, model, forward, browser, masking or"
            " missed_call.",
        ),
    ]
    force: Annotated[bool, Field(description="Take over a number that is bound elsewhere.")] = False
    stream_url: (
        Annotated[
            str, Field(max_length=2048, description="ws://, wss:// or audiosocket:// of a voice agent.")
        ]
        | None
    ) = None
    forward_to: (
        Annotated[str, Field(max_length=256, description="A number, sip: on a gateway's host, or browser:.")]
        | None
    ) = None
    caller_id: (
        Annotated[str, Field(max_length=MAX_NUMBER_CHARS, description="passthrough, or an own number.")]
        | None
    ) = None
    timeout: (
        Annotated[
            int,
            Field(
                description="Ring seconds of a forwarded call or a browser, or until a webhook says "
                "something, 5 to 120; of a missed_call 5 to 60."
            ),
        ]
        | None
    ) = None
    record: bool | None = None
    transcribe: Annotated[bool, Field(description="Once answered; needs a recogniser.")] | None = None
    transcription_language: (
        Annotated[str, Field(max_length=35, description="Of speech, with transcribe; default en-IN.")] | None
    ) = None
    webhook_url: Annotated[str, Field(max_length=2048)] | None = None
    webhook_method: Annotated[str, Field(max_length=8)] | None = None
    webhook_format: (
        Annotated[
            str, Field(max_length=8, description="json, form as servers of TwiML expect it, or jambonz.")
        ]
        | None
    ) = None
    fallback_url: (
        Annotated[
            str, Field(max_length=2048, description="Asked when server, agent or browser cannot be reached.")
        ]
        | None
    ) = None
    status_webhook_url: Annotated[str, Field(max_length=2048)] | None = None
    status_webhook_events: Annotated[list[str], Field(max_length=5)] | None = None
    agent_id: Annotated[str, Field(max_length=64)] | None = None
    workspace_id: Annotated[str, Field(max_length=64)] | None = None
    language: (
        Annotated[str, Field(max_length=35, description="In which callers of a masking number are told.")]
        | None
    ) = None
    identity: (
        Annotated[str, Field(max_length=64, description="Telephone in web pages, of target browser.")] | None
    ) = None
    model: Annotated[ModelFields, Field(description="Of target model.")] | None = None

    urls = BINDING_URLS

    @classmethod
    def schemes_of(cls, name: str, url: str, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Schemes of a field with a URL, by the format of the webhook."""
        return schemes_of(name, given.get("webhook_format"), url)

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the target's fields."""
        fields = {name: value for name, value in sound.items() if name not in ("force", "target")}
        return target_errors(sound["target"], fields) if "target" in sound else value_errors(fields)

    @classmethod
    def unreachable(cls, given: Mapping[str, Any], reach: Reach) -> list[FieldError]:
        """Errors of the party to forward to."""
        forward_to = given.get("forward_to")
        if not isinstance(forward_to, str) or not forward_to:
            return []
        return forward_to_errors(forward_to, reach.rules.allowed_countries, reach.has_gateway)

    @classmethod
    def refusal(cls, given: Mapping[str, Any], errors: Sequence[FieldError], message: str) -> DomainError:
        """Reject the binding unless fields other than options of its stream are of the wrong form."""
        wrong: set[int | str] = set()
        try:
            cls.model_validate(given)
        except ValidationError as refusal:
            wrong = {item["loc"][0] for item in refusal.errors(include_url=False) if item["loc"]}
        return BindFailed(errors, message) if wrong <= _STREAM_OPTIONS else ValidationFailed(errors, message)


class PhoneNumberObject(ResponseModel):
    """A number of the account."""

    id: str
    number: Annotated[str, Field(description="E.164.")]
    friendly_name: str | None
    status: NumberStatus
    number_type: NumberType
    region: Annotated[str | None, Field(description="Where it was bought; null for other numbers.")]
    voice_enabled: bool
    sms_enabled: bool
    monthly_cost: Annotated[float, Field(description="INR.")]
    next_billing_at: Annotated[
        Timestamp | None, Field(description="When the next month is charged; null if none ever is.")
    ]
    payment_deadline_at: Annotated[
        Timestamp | None,
        Field(description="While a renewal is unpaid: when the number is suspended, or then released."),
    ]
    inbound_target_type: Literal[
        "none",
        "voice_agent",
        "webhook",
        "media_stream",
        "model",
        "forward",
        "browser",
        "masking",
        "missed_call",
    ]
    created_at: Timestamp
    updated_at: Timestamp


class WiringObject(ResponseModel):
    """The wiring state of a number."""

    phone_number_id: str
    number: str
    carrier_registered: bool
    outbound_capable: Annotated[bool, Field(description="Same value as carrier_registered.")]
    inbound_bound: bool
    inbound_target: (
        Literal[
            "voice_agent", "webhook", "media_stream", "model", "forward", "browser", "masking", "missed_call"
        ]
        | None
    )
    agent_id: str | None = None
    workspace_id: str | None = None


class DeregisteredObject(WiringObject):
    """The wiring state after a deregistration."""

    status: Literal["deregistered"]


def number_json(number: PhoneNumber) -> dict[str, Any]:
    """Public fields of a phone number; a released one is never charged again."""
    billing = number.billing if number.status != "released" else None
    return shown(
        PhoneNumberObject,
        number,
        id=number.phone_number_id,
        monthly_cost=rupees(number.monthly_cost_paise),
        next_billing_at=billing.next_at if billing else None,
        payment_deadline_at=billing.deadline_at if billing else None,
    )


def wiring_json(state: NumberConfiguration) -> dict[str, Any]:
    """Configuration of a number; the agent's fields are present only when an agent is the target."""
    fields = shown(WiringObject, state)
    if state.inbound_target != "voice_agent":
        del fields["agent_id"], fields["workspace_id"]
    return fields
