"""Recordings and voicemail of calls: signed links, files and deletion."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from api.http.endpoint import Context, FileReply, Handover, Reply, Routes
from api.http.files import send_object
from api.schemas.base import NoBody, NoQuery
from api.schemas.recordings import CallMessages, MessageObject, RecordingLinkObject, RecordingQuery
from api.schemas.serializers import shown
from callcontrol.bootstrap.aio.services import Services
from callcontrol.calls.recording import recording_url
from callcontrol.errors import Conflict, NotFound
from callcontrol.models import Message, Principal

__all__ = ["routes"]

_OF_CALL = "/v1/calls/{callSid}/recording"

routes = Routes("calls.read", "calls.write", tag="recordings")


async def _by_link(services: Services, path: Mapping[str, str], query: Mapping[str, str]) -> Principal | None:
    """Principal of a request by a signed link; None without one."""
    if "expires" not in query and "signature" not in query:
        return None
    return await services.recordings.admit(path["callSid"], query)


@routes.get("/recordings/{callSid}.wav", media_type="audio/wav", ticket=_by_link, owned=True)
async def get_recording(context: Context[NoBody, RecordingQuery]) -> FileReply | Handover:
    """
    Download the recording or a voicemail of a call.

    By a signed link, or with a key. HEAD and Range are supported.
    """
    recordings = context.services.recordings
    found = await recordings.file(context.account_sid, context.path["callSid"])
    if isinstance(found, Path):
        return FileReply(found)
    return Handover(partial(send_object, found, "audio/wav", recordings.read))


@routes.get(_OF_CALL, response=RecordingLinkObject, owned=True)
async def get_recording_link(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a link to the recording of a call, valid for an hour."""
    call_sid = context.path["callSid"]
    url = await context.services.recordings.link(context.account_sid, call_sid)
    return Reply({"url": url, "call_sid": call_sid})


@routes.delete(_OF_CALL, errors=(Conflict,), owned=True)
async def delete_recording(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete the recording of a call.

    Permanently, and at once; the call itself is kept. 503 while the server with the file does not run, or
    the object store does not answer: nobody can open the recording any more, and it is deleted later.
    """
    await context.services.recordings.delete(context.account_sid, context.path["callSid"])
    return Reply(None)


@routes.get("/v1/calls/{callSid}/messages", response=CallMessages, errors=(NotFound,))
async def list_messages(context: Context[NoBody, NoQuery]) -> Reply:
    """
    List the voicemails of a call.

    Oldest first, each with a link that is valid for an hour.
    """
    call_sid = context.path["callSid"]
    left = await context.services.recordings.messages(context.account_sid, call_sid)
    return Reply({"call_sid": call_sid, "messages": [_message(message, url) for message, url in left]})


@routes.delete("/v1/calls/{callSid}/messages/{messageSid}", errors=(NotFound,), owned=True)
async def delete_message(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete a voicemail of a call.

    Permanently, and at once, as a recording.
    """
    path = context.path
    await context.services.recordings.delete_message(context.account_sid, path["callSid"], path["messageSid"])
    return Reply(None)


def _message(message: Message, url: str) -> dict[str, Any]:
    return shown(MessageObject, message, recording_url=recording_url(message.message_sid), url=url)
