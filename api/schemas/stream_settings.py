"""Request and response models of the stream settings of an account."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import Timestamp
from callcontrol.agents.stream_settings import DEFAULT_OVERLAP_S, MAX_OVERLAP_S
from media.streams import DIALECTS

__all__ = ["RotateStreamSecret", "StreamSecretObject", "StreamSettingsObject", "UpdateStreamSettings"]

_OVERLAP_HELP = "Seconds for which requests are signed with the former secret too; default one day."


class UpdateStreamSettings(RequestModel):
    """Settings to change."""

    default_stream_protocol: Annotated[
        Annotated[str, Field(min_length=1, max_length=32, json_schema_extra={"enum": sorted(DIALECTS)})]
        | None,
        Field(description="What agents are spoken to in where nothing else is said; null: server's default."),
    ]


class RotateStreamSecret(RequestModel):
    """Rotation of the stream secret."""

    overlap_sec: Annotated[int, Field(ge=0, le=MAX_OVERLAP_S, description=_OVERLAP_HELP)] = DEFAULT_OVERLAP_S


class StreamSettingsObject(ResponseModel):
    """The settings; the secret itself is never shown again."""

    default_stream_protocol: Annotated[str | None, Field(description="null: the server's default.")]
    has_stream_secret: Annotated[
        bool, Field(description="false: requests are signed with the secret of the webhooks.")
    ]
    stream_secret_made_at: Timestamp | None
    former_secret_until: Annotated[
        Timestamp | None, Field(description="Until then requests carry the signature by the former one too.")
    ]


class StreamSecretObject(ResponseModel):
    """The new secret, shown once."""

    stream_secret: str
    stream_secret_made_at: Timestamp
    former_secret_until: Timestamp | None
