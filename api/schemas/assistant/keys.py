"""Request and response models of the voice assistant's keys."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from api.schemas.base import RequestModel, ResponseList, ResponseModel
from api.schemas.common import Name, Timestamp
from callcontrol.accounts.keys import MAX_OVERLAP_S, scope_errors
from callcontrol.errors import FieldError

__all__ = ["CreateKey", "KeyObject", "KeyObjects", "NewKeyObject", "RotateKey", "RotatedKeyObject"]

Environment = Literal["live", "sandbox"]
Scope = Literal["assistant", "assistant.keys", "*"]


_SCOPES_HELP = "assistant.keys manages keys; * alone: every scope. Default: assistant."


class CreateKey(RequestModel):
    """A new key."""

    name: Name
    environment: (
        Annotated[Environment, Field(description="sandbox: calls test numbers alone. Default: your own.")]
        | None
    ) = None
    scopes: (
        Annotated[
            list[Scope],
            Field(
                min_length=1,
                max_length=10,
                description=_SCOPES_HELP,
                json_schema_extra={"anyOf": [{"items": {"const": "*"}}, {"items": {"not": {"const": "*"}}}]},
            ),
        ]
        | None
    ) = None

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the scopes together."""
        return scope_errors("assistant", sound.get("scopes"))


class RotateKey(RequestModel):
    """Rotation of a key."""

    overlap_seconds: Annotated[
        int, Field(ge=0, le=MAX_OVERLAP_S, description="Seconds for which the old key remains valid.")
    ] = 86_400


class KeyObject(ResponseModel):
    """A key; the key itself is never shown again."""

    id: str
    name: str | None
    environment: Environment
    scopes: list[str]
    prefix: Annotated[str, Field(description="How it begins, to tell keys apart.")]
    state: Literal["active", "retiring"]
    created_at: Timestamp
    expires_at: Annotated[Timestamp | None, Field(description="When a key that was rotated ends.")]


class NewKeyObject(KeyObject):
    """A new key, with the key itself."""

    key: Annotated[str, Field(description="Shown this once.")]


class RotatedKeyObject(NewKeyObject):
    """The new key that replaces an old one."""

    replaces: KeyObject


class KeyObjects(ResponseList[KeyObject]):
    """Valid keys of the account, oldest first."""
