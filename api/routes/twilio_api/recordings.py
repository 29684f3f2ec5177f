"""Recordings in Twilio's interface: a call has one, which has the SID of the call."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from api.http.cursor import write_cursor
from api.http.endpoint import Context, FileReply, Handover, Reply, Routes
from api.http.errors import ErrorStyle
from api.http.files import send_object
from api.routes.twilio_api.shapes import ACCOUNT, moment, numbered, position, times
from api.schemas.base import NoBody, NoQuery
from api.schemas.twilio_api.base import API_VERSION
from api.schemas.twilio_api.recordings import (
    TwilioRecording,
    TwilioRecordingList,
    TwilioRecordingQuery,
    TwilioRecordingsOfCallQuery,
)
from callcontrol.calls.recording import PENDING
from callcontrol.errors import Conflict, NotFound
from callcontrol.models import CallRecord

__all__ = ["routes"]

_ALL = f"{ACCOUNT}/Recordings.json"
_OF_CALL = f"{ACCOUNT}/Calls/{{callSid}}/Recordings.json"
_ONE = f"{ACCOUNT}/Recordings/{{recordingSid}}.json"
_FILE = f"{ACCOUNT}/Recordings/{{recordingSid}}.wav"
_LISTED = "recordings"

routes = Routes(
    "calls.read", "calls.write", style=ErrorStyle.TWILIO, tag="recordings, as Twilio's clients ask"
)


@routes.get(_ALL, response=TwilioRecordingList)
async def list_twilio_recordings(context: Context[NoBody, TwilioRecordingQuery]) -> Reply:
    """
    List the recordings of ended calls in Twilio's shape.

    The call that ended last comes first. The filter CallSid also finds that of an active call.
    """
    query = context.query
    if query.CallSid is not None:
        return await _of_call(context, query.CallSid, _ALL)
    start, end = times(query.on, query.after, query.before, "DateCreated")
    page = await context.services.recordings.recorded_calls(
        context.account_sid,
        query.Page + 1,
        query.PageSize,
        after=position(_LISTED, query.PageToken),
        start=start,
        end=end,
    )
    return _page(context, _ALL, page.items, token=write_cursor(_LISTED, page.after))


@routes.get(_OF_CALL, response=TwilioRecordingList)
async def list_twilio_recordings_of_call(context: Context[NoBody, TwilioRecordingsOfCallQuery]) -> Reply:
    """List the recording of a call in Twilio's shape."""
    return await _of_call(context, context.path["callSid"], _OF_CALL)


@routes.get(_ONE, response=TwilioRecording)
async def get_twilio_recording(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a recording in Twilio's shape."""
    record = await context.services.calls.get_call(context.account_sid, context.path["recordingSid"])
    if not _is_recorded(record):
        raise NotFound("There is no such recording: the call was not recorded, or it was deleted.")
    return Reply(_shown(record))


@routes.get(_FILE, media_type="audio/wav", owned=True)
async def get_twilio_recording_file(context: Context[NoBody, NoQuery]) -> FileReply | Handover:
    """
    Download a recording.

    HEAD and Range are supported.
    """
    recordings = context.services.recordings
    found = await recordings.file(context.account_sid, context.path["recordingSid"])
    if isinstance(found, Path):
        return FileReply(found)
    return Handover(partial(send_object, found, "audio/wav", recordings.read, style=ErrorStyle.TWILIO))


@routes.delete(_ONE, errors=(Conflict,), owned=True)
async def delete_twilio_recording(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Delete a recording.

    Permanently, and at once; the call itself is kept.
    """
    await context.services.recordings.delete(context.account_sid, context.path["recordingSid"])
    return Reply(None)


async def _of_call(
    context: Context[NoBody, TwilioRecordingQuery] | Context[NoBody, TwilioRecordingsOfCallQuery],
    call_sid: str,
    path: str,
) -> Reply:
    record = await context.services.calls.get_call(context.account_sid, call_sid)
    first = context.query.Page == 0
    return _page(context, path, [record] if first and _is_recorded(record) else [])


def _page(
    context: Context[NoBody, TwilioRecordingQuery] | Context[NoBody, TwilioRecordingsOfCallQuery],
    path: str,
    records: list[CallRecord],
    token: str | None = None,
) -> Reply:
    address = path.format(**{**context.path, "sid": context.account_sid})
    links = context.query.links(address, has_next=token is not None, token=token)
    return Reply(numbered({"recordings": [_shown(record) for record in records], **links}, "recordings"))


def _is_recorded(record: CallRecord) -> bool:
    return record.recording_status not in (None, "deleted")


def _shown(record: CallRecord) -> dict[str, Any]:
    answered = record.answered_at or record.created_at
    done = record.recording_status not in PENDING
    address = {"sid": record.account_sid, "recordingSid": record.call_sid}
    return {
        "sid": record.call_sid,
        "account_sid": record.account_sid,
        "call_sid": record.call_sid,
        "conference_sid": None,
        # Twilio's word for a recording that could not be made.
        "status": "absent" if record.recording_status == "failed" else record.recording_status,
        "date_created": moment(record.ended_at or answered),
        "date_updated": moment(record.ended_at or answered),
        "start_time": moment(answered),
        "duration": str(record.duration_sec) if done and record.duration_sec is not None else None,
        "channels": None,
        "source": None,
        "price": None,
        "price_unit": record.currency,
        "error_code": None,
        "encryption_details": None,
        "api_version": API_VERSION,
        "media_url": _FILE.format(**address),
        "uri": _ONE.format(**address),
    }
