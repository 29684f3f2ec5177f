"""Optional fields of the stream to a voice agent, common to calls and inbound bindings."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.base import RequestModel
from media.streams import DIALECTS

__all__ = ["CustomParameters", "StreamAuth", "StreamFields"]

CustomParameters = Annotated[
    dict[
        Annotated[str, Field(min_length=1, max_length=64)],
        Annotated[str, Field(max_length=1024)],
    ],
    Field(max_length=50),
]


class StreamAuth(RequestModel):
    """Credentials for the WebSocket upgrade."""

    type: Literal["basic", "bearer"]
    username: Annotated[str, Field(max_length=256)] | None = None
    password: Annotated[str, Field(max_length=1024, json_schema_extra={"writeOnly": True})] | None = None
    token: Annotated[str, Field(max_length=4096, json_schema_extra={"writeOnly": True})] | None = None


class StreamFields(RequestModel):
    """Connection, dialect and audio format of the stream to an agent."""

    sample_rate: Annotated[int, Field(description="8000 or 16000; default 8000.")] | None = None
    stream_protocol: (
        Annotated[
            str,
            Field(
                max_length=32,
                description=f"{', '.join(DIALECTS)}; default exotel, or audiosocket by the URL.",
            ),
        ]
        | None
    ) = None
    encoding: (
        Annotated[str, Field(max_length=32, description="l16, mulaw or alaw, as the dialect allows.")] | None
    ) = None
    custom_parameters: (
        Annotated[CustomParameters, Field(description="Handed to the agent at start.")] | None
    ) = None
    stream_auth: StreamAuth | None = None
    stream_track: Annotated[str, Field(max_length=32, description="inbound (default), or both.")] | None = (
        None
    )
    stream_max_retries: (
        Annotated[int, Field(ge=0, le=10, description="How often a stream that breaks is opened anew.")]
        | None
    ) = None
