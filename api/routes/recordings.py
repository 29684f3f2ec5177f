"""Recordings of calls; a call's ``recording_url`` points here."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from api.endpoint import Context, Endpoint, FileReply
from api.schemas.base import NoBody, NoQuery
from callcontrol.errors import NotFound

__all__ = ["ENDPOINTS"]


async def get_recording(context: Context[NoBody, NoQuery]) -> FileReply:
    """Answer GET /recordings/{callSid}.wav."""
    record = await context.services.calls.get_call(context.account_sid, context.path["callSid"])
    if record.recording_path is None or record.recording_url is None:
        raise NotFound("The call has no recording; it was not asked for, or is not finished yet.")
    path = Path(record.recording_path)
    if not await asyncio.to_thread(path.is_file):
        raise NotFound("The recording is no longer kept.")
    return FileReply(path)


ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="GET",
        path="/recordings/{callSid}.wav",
        handler=get_recording,
        scope="calls.read",
        summary="Download the recording of a call",
        tag="recordings",
        response=None,
        media_type="audio/wav",
    ),
)
