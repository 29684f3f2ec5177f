# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.recordings`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import recordings as fields_of
from trunkline_client.generated.results import recordings, shared
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_GET_MASKED = Operation("GET", "/v1/masking/calls/{call_sid}/recording")
_GET = Operation("GET", "/recordings/{callSid}.wav", queries=frozenset({"expires", "signature"}))
_GET_LINK = Operation("GET", "/v1/calls/{callSid}/recording")
_DELETE = Operation("DELETE", "/v1/calls/{callSid}/recording")
_LIST_MESSAGES = Operation("GET", "/v1/calls/{callSid}/messages")
_DELETE_MESSAGE = Operation("DELETE", "/v1/calls/{callSid}/messages/{messageSid}")


class RecordingsResource(Resource):
    """Operations of `client.recordings`."""

    def get_masked(self, call_sid: str, /) -> shared.RecordingLink:
        """Get a link to the recording of a masked call, valid for an hour."""
        return self._transport.item(_GET_MASKED, (call_sid,), {}, shared.RecordingLink)

    def get(self, call_sid: str, /, **fields: Unpack[fields_of.GetRecordingFields]) -> bytes:
        """Download the recording or a voicemail of a call."""
        return self._transport.file(_GET, (call_sid,), fields)

    def get_link(self, call_sid: str, /) -> shared.RecordingLink:
        """Get a link to the recording of a call, valid for an hour."""
        return self._transport.item(_GET_LINK, (call_sid,), {}, shared.RecordingLink)

    def delete(self, call_sid: str, /) -> None:
        """Delete the recording of a call."""
        return self._transport.nothing(_DELETE, (call_sid,), {})

    def list_messages(self, call_sid: str, /) -> recordings.CallMessages:
        """List the voicemails of a call."""
        return self._transport.item(_LIST_MESSAGES, (call_sid,), {}, recordings.CallMessages)

    def delete_message(self, call_sid: str, message_sid: str, /) -> None:
        """Delete a voicemail of a call."""
        return self._transport.nothing(_DELETE_MESSAGE, (call_sid, message_sid,), {})


class AsyncRecordingsResource(AsyncResource):
    """Operations of `client.recordings`."""

    async def get_masked(self, call_sid: str, /) -> shared.RecordingLink:
        """Get a link to the recording of a masked call, valid for an hour."""
        return await self._transport.item(_GET_MASKED, (call_sid,), {}, shared.RecordingLink)

    async def get(self, call_sid: str, /, **fields: Unpack[fields_of.GetRecordingFields]) -> bytes:
        """Download the recording or a voicemail of a call."""
        return await self._transport.file(_GET, (call_sid,), fields)

    async def get_link(self, call_sid: str, /) -> shared.RecordingLink:
        """Get a link to the recording of a call, valid for an hour."""
        return await self._transport.item(_GET_LINK, (call_sid,), {}, shared.RecordingLink)

    async def delete(self, call_sid: str, /) -> None:
        """Delete the recording of a call."""
        return await self._transport.nothing(_DELETE, (call_sid,), {})

    async def list_messages(self, call_sid: str, /) -> recordings.CallMessages:
        """List the voicemails of a call."""
        return await self._transport.item(_LIST_MESSAGES, (call_sid,), {}, recordings.CallMessages)

    async def delete_message(self, call_sid: str, message_sid: str, /) -> None:
        """Delete a voicemail of a call."""
        return await self._transport.nothing(_DELETE_MESSAGE, (call_sid, message_sid,), {})
