# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.assistant`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import assistant as fields_of
from trunkline_client.generated.results import assistant, shared
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_START_CALL = Operation("POST", "/api/v1/calls/outbound", idempotent=True)
_LIST_CALLS = Operation(
    "GET", "/api/v1/calls", queries=frozenset({"status", "direction", "agent_id", "phone_number", "environment", "start_date", "end_date", "per_page"})
)
_GET_CALL = Operation("GET", "/api/v1/calls/{call_id}")
_END_CALL = Operation("DELETE", "/api/v1/calls/{call_id}")
_GET_TRANSCRIPT = Operation("GET", "/api/v1/calls/{call_id}/transcript")
_DELETE_TRANSCRIPT = Operation("DELETE", "/api/v1/calls/{call_id}/transcript")
_GET_RECORDING = Operation("GET", "/api/v1/calls/{call_id}/recording")
_GET_ANALYTICS = Operation(
    "GET", "/api/v1/analytics", queries=frozenset({"start_date", "end_date", "agent_id", "environment"})
)


class AssistantResource(Resource):
    """Operations of `client.assistant`."""

    def start_call(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.StartAssistantCallFields]
    ) -> assistant.AssistantCall:
        """Place a call of an agent."""
        return self._transport.item(_START_CALL, (), fields, assistant.AssistantCall, idempotency_key)

    def list_calls(
        self, **fields: Unpack[fields_of.ListAssistantCallsFields]
    ) -> Pages[assistant.AssistantCall]:
        """List calls of agents, newest first."""
        return self._transport.pages(_LIST_CALLS, (), fields, assistant.AssistantCall)

    def get_call(self, call_id: str, /) -> assistant.AssistantCall:
        """Get a call of an agent, with what was said on it so far."""
        return self._transport.item(_GET_CALL, (call_id,), {}, assistant.AssistantCall)

    def end_call(self, call_id: str, /) -> assistant.AssistantCall:
        """Hang up a call of an agent."""
        return self._transport.item(_END_CALL, (call_id,), {}, assistant.AssistantCall)

    def get_transcript(self, call_id: str, /) -> assistant.Transcript:
        """Get what was said on a call that has ended."""
        return self._transport.item(_GET_TRANSCRIPT, (call_id,), {}, assistant.Transcript)

    def delete_transcript(self, call_id: str, /) -> None:
        """Delete what was said on a call."""
        return self._transport.nothing(_DELETE_TRANSCRIPT, (call_id,), {})

    def get_recording(self, call_id: str, /) -> shared.RecordingLink:
        """Get a link to the recording of a call of an agent."""
        return self._transport.item(_GET_RECORDING, (call_id,), {}, shared.RecordingLink)

    def get_analytics(self, **fields: Unpack[fields_of.GetAnalyticsFields]) -> assistant.AnalyticsObject:
        """Get statistics of the calls of agents, in all and by day."""
        return self._transport.item(_GET_ANALYTICS, (), fields, assistant.AnalyticsObject)


class AsyncAssistantResource(AsyncResource):
    """Operations of `client.assistant`."""

    async def start_call(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.StartAssistantCallFields]
    ) -> assistant.AssistantCall:
        """Place a call of an agent."""
        return await self._transport.item(_START_CALL, (), fields, assistant.AssistantCall, idempotency_key)

    def list_calls(
        self, **fields: Unpack[fields_of.ListAssistantCallsFields]
    ) -> AsyncPages[assistant.AssistantCall]:
        """List calls of agents, newest first."""
        return self._transport.pages(_LIST_CALLS, (), fields, assistant.AssistantCall)

    async def get_call(self, call_id: str, /) -> assistant.AssistantCall:
        """Get a call of an agent, with what was said on it so far."""
        return await self._transport.item(_GET_CALL, (call_id,), {}, assistant.AssistantCall)

    async def end_call(self, call_id: str, /) -> assistant.AssistantCall:
        """Hang up a call of an agent."""
        return await self._transport.item(_END_CALL, (call_id,), {}, assistant.AssistantCall)

    async def get_transcript(self, call_id: str, /) -> assistant.Transcript:
        """Get what was said on a call that has ended."""
        return await self._transport.item(_GET_TRANSCRIPT, (call_id,), {}, assistant.Transcript)

    async def delete_transcript(self, call_id: str, /) -> None:
        """Delete what was said on a call."""
        return await self._transport.nothing(_DELETE_TRANSCRIPT, (call_id,), {})

    async def get_recording(self, call_id: str, /) -> shared.RecordingLink:
        """Get a link to the recording of a call of an agent."""
        return await self._transport.item(_GET_RECORDING, (call_id,), {}, shared.RecordingLink)

    async def get_analytics(
        self, **fields: Unpack[fields_of.GetAnalyticsFields]
    ) -> assistant.AnalyticsObject:
        """Get statistics of the calls of agents, in all and by day."""
        return await self._transport.item(_GET_ANALYTICS, (), fields, assistant.AnalyticsObject)
