"""Requests and answers of the recording endpoints."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel

__all__ = ["RecordingLinkObject", "RecordingQuery"]


class RecordingLinkObject(ResponseModel):
    """Where a recording can be had for an hour, without a key."""

    url: Annotated[
        str, Field(description="Path and query; put the origin of the API before it, without /v1.")
    ]
    call_sid: str


class RecordingQuery(RequestModel):
    """What a link to a recording carries."""

    expires: Annotated[str, Field(description="When the link ends, in epoch seconds.")] | None = None
    signature: Annotated[str, Field(description="What proves the link.")] | None = None
