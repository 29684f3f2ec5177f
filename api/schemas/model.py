"""Description of a session with a vendor's realtime speech model, and its stored keys."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from api.schemas.base import RequestModel, ResponseList, ResponseModel
from api.schemas.common import Timestamp
from callcontrol.errors import FieldError
from callcontrol.model_keys.keys import value_errors
from media.streams import StreamSetupError, choose_model
from media.streams.speech_models import (
    DEFAULT_MODEL_RETRIES,
    MAX_GREETING_CHARS,
    MAX_INSTRUCTIONS_CHARS,
    MAX_KEY_CHARS,
    MAX_MODEL_RETRIES,
    MAX_MODEL_URL_CHARS,
    MAX_TOOLS,
    Provider,
)

__all__ = [
    "CreateModelKey",
    "ModelFields",
    "ModelKeyObject",
    "ModelKeyObjects",
    "ModelObject",
    "model_errors",
    "model_json",
]

_NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._:/@-]*$"
_KEY_PATTERN = "^[A-Za-z0-9._-]+$"
_SECRET_PATTERN = "^[!-~]+$"

_Named = Annotated[str, Field(min_length=1, max_length=200, json_schema_extra={"pattern": _NAME_PATTERN})]
_KeyName = Annotated[str, Field(min_length=1, max_length=64, json_schema_extra={"pattern": _KEY_PATTERN})]
_Secret = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_KEY_CHARS,
        json_schema_extra={"writeOnly": True, "pattern": _SECRET_PATTERN},
    ),
]
_ToolName = Annotated[
    str, Field(min_length=1, max_length=64, json_schema_extra={"pattern": "^[A-Za-z0-9_-]+$"})
]


class ModelFields(RequestModel):
    """A vendor's realtime speech model as the agent of a call; see docs/api/model.md."""

    provider: Provider
    model: Annotated[_Named, Field(description="The vendor's name of it; of ElevenLabs the agent's id.")]
    instructions: Annotated[str, Field(min_length=1, max_length=MAX_INSTRUCTIONS_CHARS)] | None = None
    voice: Annotated[_Named, Field(description="The vendor's name of it.")] | None = None
    greeting: (
        Annotated[
            str,
            Field(min_length=1, max_length=MAX_GREETING_CHARS, description="Said when the call is answered."),
        ]
        | None
    ) = None
    language: (
        Annotated[
            str,
            Field(
                min_length=2,
                max_length=20,
                json_schema_extra={"pattern": "^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}$"},
            ),
        ]
        | None
    ) = None
    tools: (
        Annotated[
            list[_ToolName],
            Field(
                max_length=MAX_TOOLS,
                description="transfer, hangup, hold, send_digits, and tools of the account.",
                json_schema_extra={"uniqueItems": True},
            ),
        ]
        | None
    ) = None
    api_key: Annotated[_Secret, Field(description="The vendor's key, unless key names one.")] | None = None
    key: Annotated[_KeyName, Field(description="Name of a stored key.")] | None = None
    transcription: (
        Annotated[_Named, Field(description="Model that transcribes the caller, of openai; none for none.")]
        | None
    ) = None
    url: (
        Annotated[
            str,
            Field(
                max_length=MAX_MODEL_URL_CHARS,
                description="wss:// address instead of the vendor's own; of ultravox https://.",
            ),
        ]
        | None
    ) = None
    max_retries: Annotated[
        int, Field(ge=0, le=MAX_MODEL_RETRIES, description="How often a session that breaks is continued.")
    ] = DEFAULT_MODEL_RETRIES


class ModelObject(ResponseModel):
    """A vendor's model as the target of calls; its key is never shown."""

    provider: Provider
    model: str
    instructions: str | None = None
    voice: str | None = None
    greeting: str | None = None
    language: str | None = None
    tools: list[str] | None = None
    key: Annotated[str | None, Field(description="Name of the stored key.")] = None
    transcription: str | None = None
    url: str | None = None
    max_retries: int | None = None


class CreateModelKey(RequestModel):
    """A vendor's key to store; it cannot be read again."""

    name: Annotated[_KeyName, Field(description="By which sessions name it.")]
    provider: Annotated[Provider, Field(description="Whose key it is.")]
    api_key: _Secret

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the values."""
        return value_errors(sound)


class ModelKeyObject(ResponseModel):
    """A stored key of a vendor, without the key itself."""

    key_id: str
    name: str
    provider: Provider
    created_at: Timestamp


class ModelKeyObjects(ResponseList[ModelKeyObject]):
    """The stored keys of an account."""


def model_errors(given: object) -> list[FieldError]:
    """Errors of a session's description, by their paths in a request."""
    try:
        choose_model(given)
    except StreamSetupError as error:
        return [FieldError(f"model.{name}" if name else "model", why) for name, why in error.faults.items()]
    return []


def model_json(model: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Public fields of a stored description."""
    if model is None:
        return None
    return {name: model.get(name) for name in ModelObject.model_fields}
