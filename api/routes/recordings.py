"""Recordings and voicemail of calls: signed links, files and deletion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.http.endpoint import Context, Endpoint, FileReply, Reply
from api.routes.masking.calls import MASKING
from api.schemas.base import NoBody, NoQuery
from api.schemas.recordings import CallMessages, RecordingLinkObject, RecordingQuery
from api.schemas.serializers import rfc3339
from callcontrol.bootstrap.aio.services import Services
from callcontrol.calls.recording import recording_url
from callcontrol.errors import Conflict, NotFound
from callcontrol.masking.calls import PRODUCT
from callcontrol.models import Message, Principal

__all__ = ["ENDPOINTS"]


async def get_recording(context: Context[NoBody, RecordingQuery]) -> FileReply:
    """Answer GET /recordings/{callSid}.wav."""
    return FileReply(await context.services.recordings.file(context.account_sid, context.path["callSid"]))


async def _by_link(services: Services, path: Mapping[str, str], query: Mapping[str, str]) -> Principal | None:
    """Principal of a request by a signed link; None without one."""
    if "expires" not in query and "signature" not in query:
        return None
    return await services.recordings.admit(path["callSid"], query)


async def get_recording_link(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /calls/{callSid}/recording."""
    call_sid = context.path["callSid"]
    return _link(await context.services.recordings.link(context.account_sid, call_sid), call_sid)


async def get_masked_recording(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /masking/calls/{call_sid}/recording."""
    call_sid = context.path["call_sid"]
    recordings = context.services.recordings
    return _link(await recordings.link_of_product(context.account_sid, call_sid, PRODUCT), call_sid)


async def delete_recording(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /calls/{callSid}/recording."""
    await context.services.recordings.delete(context.account_sid, context.path["callSid"])
    return Reply(None)


async def list_messages(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /calls/{callSid}/messages."""
    call_sid = context.path["callSid"]
    left = await context.services.recordings.messages(context.account_sid, call_sid)
    return Reply({"call_sid": call_sid, "messages": [_message(message, url) for message, url in left]})


async def delete_message(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /calls/{callSid}/messages/{messageSid}."""
    path = context.path
    await context.services.recordings.delete_message(context.account_sid, path["callSid"], path["messageSid"])
    return Reply(None)


def _message(message: Message, url: str) -> dict[str, Any]:
    return {
        "message_sid": message.message_sid,
        "duration_ms": message.duration_ms,
        "created_at": rfc3339(message.created_at),
        "recording_url": recording_url(message.message_sid),
        "url": url,
    }


def _link(url: str, call_sid: str) -> Reply:
    return Reply({"url": url, "call_sid": call_sid})


_RECORDINGS: dict[str, Any] = {"tag": "recordings"}
_OF_CALL = "/v1/calls/{callSid}/recording"

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="GET",
        path="/recordings/{callSid}.wav",
        handler=get_recording,
        scope="calls.read",
        summary="Download the recording or a voicemail of a call",
        description="By a signed link, or with a key. HEAD and Range are supported.",
        query=RecordingQuery,
        response=None,
        media_type="audio/wav",
        ticket=_by_link,
        **_RECORDINGS,
    ),
    Endpoint(
        method="GET",
        path=_OF_CALL,
        handler=get_recording_link,
        scope="calls.read",
        summary="Get a link to the recording of a call, valid for an hour",
        response=RecordingLinkObject,
        **_RECORDINGS,
    ),
    Endpoint(
        method="DELETE",
        path=_OF_CALL,
        handler=delete_recording,
        scope="calls.write",
        success=204,
        summary="Delete the recording of a call",
        description="Permanently, and at once; the call itself is kept.",
        response=None,
        errors=(Conflict,),
        **_RECORDINGS,
    ),
    Endpoint(
        method="GET",
        path="/v1/calls/{callSid}/messages",
        handler=list_messages,
        scope="calls.read",
        summary="List the voicemails of a call",
        description="Oldest first, each with a link that is valid for an hour.",
        response=CallMessages,
        errors=(NotFound,),
        **_RECORDINGS,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/calls/{callSid}/messages/{messageSid}",
        handler=delete_message,
        scope="calls.write",
        success=204,
        summary="Delete a voicemail of a call",
        description="Permanently, and at once.",
        response=None,
        errors=(NotFound,),
        **_RECORDINGS,
    ),
    Endpoint(
        method="GET",
        path="/v1/masking/calls/{call_sid}/recording",
        handler=get_masked_recording,
        scope="masking.read",
        summary="Get a link to the recording of a masked call, valid for an hour",
        response=RecordingLinkObject,
        **{**MASKING, **_RECORDINGS},
    ),
)
