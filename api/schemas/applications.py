"""Request and response models of applications."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from api.schemas.base import Reach, ResponseModel, all_optional
from api.schemas.common import Name, Timestamp
from api.schemas.forms import HookText, StreamUrl, WebUrl
from api.schemas.model import ModelFields, ModelObject
from api.schemas.streams import StreamFields
from callcontrol.applications.application import name_errors
from callcontrol.e164 import MAX_NUMBER_CHARS
from callcontrol.errors import FieldError
from callcontrol.numbers.binding import (
    BINDING_URLS,
    forward_to_errors,
    schemes_of,
    target_errors,
    value_errors,
)

__all__ = ["ApplicationObject", "CreateApplication", "UpdateApplication"]

_OWN_FIELDS = ("name", "target", "record_all_calls")

Target = Literal["voice_agent", "webhook", "media_stream", "model", "forward"]


class CreateApplication(StreamFields):
    """Routing of calls to a target; the fields of each target are those of an inbound binding."""

    name: Name
    target: Annotated[Target, Field(description="Where calls go.")]
    stream_url: (
        Annotated[StreamUrl, Field(description="ws://, wss:// or audiosocket:// of a voice agent.")] | None
    ) = None
    forward_to: (
        Annotated[str, Field(max_length=256, description="A number, or sip: on a gateway's host.")] | None
    ) = None
    caller_id: (
        Annotated[str, Field(max_length=MAX_NUMBER_CHARS, description="passthrough, or an own number.")]
        | None
    ) = None
    timeout: Annotated[int, Field(description="Ring seconds of the forwarded call, 5 to 120.")] | None = None
    webhook_url: (
        Annotated[HookText, Field(description="http(s), or ws(s) with the webhook_format jambonz.")] | None
    ) = None
    webhook_method: Annotated[str, Field(max_length=8)] | None = None
    webhook_format: (
        Annotated[
            str, Field(max_length=8, description="json, form as servers of TwiML expect it, or jambonz.")
        ]
        | None
    ) = None
    fallback_url: (
        Annotated[WebUrl, Field(description="Asked when server or agent cannot be reached.")] | None
    ) = None
    status_webhook_url: WebUrl | None = None
    status_webhook_events: Annotated[list[str], Field(max_length=5)] | None = None
    agent_id: Annotated[str, Field(max_length=64)] | None = None
    workspace_id: Annotated[str, Field(max_length=64)] | None = None
    record_all_calls: Annotated[bool, Field(description="Record calls whatever else is asked for.")] = False
    transcribe: Annotated[bool, Field(description="Once answered; needs a recogniser.")] | None = None
    transcription_language: (
        Annotated[str, Field(max_length=35, description="Of speech, with transcribe; default en-IN.")] | None
    ) = None
    model: Annotated[ModelFields, Field(description="Of target model.")] | None = None

    urls = BINDING_URLS

    @classmethod
    def schemes_of(cls, name: str, url: str, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Schemes of a field with a URL, by the format of the webhook."""
        return schemes_of(name, given.get("webhook_format"), url)

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the name and the target's fields."""
        errors = name_errors(sound["name"]) if "name" in sound else []
        fields = {name: value for name, value in sound.items() if name not in _OWN_FIELDS}
        return errors + (
            target_errors(sound["target"], fields) if "target" in sound else value_errors(fields)
        )

    @classmethod
    def unreachable(cls, given: Mapping[str, Any], reach: Reach) -> list[FieldError]:
        """Errors of the party to forward to."""
        forward_to = given.get("forward_to")
        if not isinstance(forward_to, str) or not forward_to:
            return []
        return forward_to_errors(forward_to, reach.rules.allowed_countries, reach.has_gateway)


class UpdateApplication(CreateApplication):
    """Fields of an application to change; null removes a value, omitted fields keep theirs."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    name: Name = ""
    target: Annotated[Target, Field(description="Leaves the fields of the former one behind.")] = (
        "media_stream"
    )

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the name and the given fields; those that are missing may be there already."""
        return [error for error in super().rules(sound) if error.field in sound]


class ApplicationObject(ResponseModel):
    """An application; credentials of its stream are never shown."""

    app_sid: str
    sid: Annotated[str, Field(description="Alias of app_sid.")]
    name: str
    target: Target
    webhook_url: str | None
    webhook_method: str | None
    webhook_format: str | None
    fallback_url: str | None
    status_webhook_url: str | None
    status_webhook_events: list[str] | None
    stream_url: str | None
    sample_rate: int | None
    stream_protocol: str | None
    encoding: str | None
    custom_parameters: dict[str, str] | None
    stream_track: str | None
    stream_max_retries: int | None
    agent_id: str | None
    workspace_id: str | None
    forward_to: str | None
    caller_id: str | None
    timeout: int | None
    record_all_calls: bool
    transcribe: bool | None
    transcription_language: str | None
    model: ModelObject | None
    created_at: Timestamp
    updated_at: Timestamp
