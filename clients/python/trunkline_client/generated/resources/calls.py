# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.calls`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.calls import AsyncCall, Call
from trunkline_client.generated.fields import calls as fields_of
from trunkline_client.generated.results import calls
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_CREATE = Operation("POST", "/v1/calls", idempotent=True)
_LIST = Operation(
    "GET", "/v1/calls", queries=frozenset({"status", "direction", "from", "to", "start_date", "end_date", "per_page"})
)
_GET = Operation("GET", "/v1/calls/{callSid}")
_TRACE = Operation("GET", "/v1/calls/{callSid}/trace")
_GET_TRANSCRIPT = Operation("GET", "/v1/calls/{callSid}/transcript")
_DELETE_TRANSCRIPT = Operation("DELETE", "/v1/calls/{callSid}/transcript")
_UPDATE = Operation("POST", "/v1/Accounts/{sid}/Calls/{callSid}")
_HANGUP = Operation("DELETE", "/v1/Accounts/{sid}/Calls/{callSid}")
_LISTEN_TO = Operation("POST", "/v1/calls/{callSid}/listeners")
_LIST_LISTENERS = Operation("GET", "/v1/calls/{callSid}/listeners")
_END_LISTENER = Operation("DELETE", "/v1/calls/{callSid}/listeners/{listener_sid}")


class CallsResource(Resource):
    """Operations of `client.calls`."""

    def create(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.CreateCallFields]
    ) -> Call:
        """Originate a call."""
        return self._transport.item(_CREATE, (), fields, Call, idempotency_key)

    def list(self, **fields: Unpack[fields_of.ListCallsFields]) -> Pages[Call]:
        """List calls, newest first."""
        return self._transport.pages(_LIST, (), fields, Call)

    def get(self, call_sid: str, /) -> Call:
        """Get a call by its identifier alone."""
        return self._transport.item(_GET, (call_sid,), {}, Call)

    def trace(self, call_sid: str, /) -> calls.Trace:
        """Get the signalling of a call."""
        return self._transport.item(_TRACE, (call_sid,), {}, calls.Trace)

    def get_transcript(self, call_sid: str, /) -> calls.CallTranscript:
        """Get what the parties of a transcribed call have said so far."""
        return self._transport.item(_GET_TRANSCRIPT, (call_sid,), {}, calls.CallTranscript)

    def delete_transcript(self, call_sid: str, /) -> None:
        """Delete the transcript of a call."""
        return self._transport.nothing(_DELETE_TRANSCRIPT, (call_sid,), {})

    def update(self, call_sid: str, /, **fields: Unpack[fields_of.UpdateLiveCallFields]) -> Call:
        """Change an active call."""
        return self._transport.item(_UPDATE, (call_sid,), fields, Call)

    def hangup(self, call_sid: str, /) -> Call:
        """Hang up a call."""
        return self._transport.item(_HANGUP, (call_sid,), {}, Call)

    def listen_to(
        self, call_sid: str, /, **fields: Unpack[fields_of.ListenToCallFields]
    ) -> calls.NewCallListener:
        """Listen in on an active call from a browser."""
        return self._transport.item(_LISTEN_TO, (call_sid,), fields, calls.NewCallListener)

    def list_listeners(self, call_sid: str, /) -> calls.CallListeners:
        """Get who listens to a call, and who has."""
        return self._transport.item(_LIST_LISTENERS, (call_sid,), {}, calls.CallListeners)

    def end_listener(self, call_sid: str, listener_sid: str, /) -> None:
        """End a listening."""
        return self._transport.nothing(_END_LISTENER, (call_sid, listener_sid,), {})


class AsyncCallsResource(AsyncResource):
    """Operations of `client.calls`."""

    async def create(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.CreateCallFields]
    ) -> AsyncCall:
        """Originate a call."""
        return await self._transport.item(_CREATE, (), fields, AsyncCall, idempotency_key)

    def list(self, **fields: Unpack[fields_of.ListCallsFields]) -> AsyncPages[AsyncCall]:
        """List calls, newest first."""
        return self._transport.pages(_LIST, (), fields, AsyncCall)

    async def get(self, call_sid: str, /) -> AsyncCall:
        """Get a call by its identifier alone."""
        return await self._transport.item(_GET, (call_sid,), {}, AsyncCall)

    async def trace(self, call_sid: str, /) -> calls.Trace:
        """Get the signalling of a call."""
        return await self._transport.item(_TRACE, (call_sid,), {}, calls.Trace)

    async def get_transcript(self, call_sid: str, /) -> calls.CallTranscript:
        """Get what the parties of a transcribed call have said so far."""
        return await self._transport.item(_GET_TRANSCRIPT, (call_sid,), {}, calls.CallTranscript)

    async def delete_transcript(self, call_sid: str, /) -> None:
        """Delete the transcript of a call."""
        return await self._transport.nothing(_DELETE_TRANSCRIPT, (call_sid,), {})

    async def update(self, call_sid: str, /, **fields: Unpack[fields_of.UpdateLiveCallFields]) -> AsyncCall:
        """Change an active call."""
        return await self._transport.item(_UPDATE, (call_sid,), fields, AsyncCall)

    async def hangup(self, call_sid: str, /) -> AsyncCall:
        """Hang up a call."""
        return await self._transport.item(_HANGUP, (call_sid,), {}, AsyncCall)

    async def listen_to(
        self, call_sid: str, /, **fields: Unpack[fields_of.ListenToCallFields]
    ) -> calls.NewCallListener:
        """Listen in on an active call from a browser."""
        return await self._transport.item(_LISTEN_TO, (call_sid,), fields, calls.NewCallListener)

    async def list_listeners(self, call_sid: str, /) -> calls.CallListeners:
        """Get who listens to a call, and who has."""
        return await self._transport.item(_LIST_LISTENERS, (call_sid,), {}, calls.CallListeners)

    async def end_listener(self, call_sid: str, listener_sid: str, /) -> None:
        """End a listening."""
        return await self._transport.nothing(_END_LISTENER, (call_sid, listener_sid,), {})
