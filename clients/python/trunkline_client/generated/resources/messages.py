# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.messages`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import messages as fields_of
from trunkline_client.generated.results import messages
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_SEND = Operation("POST", "/api/v1/messages", idempotent=True, bare=True)
_LIST = Operation(
    "GET", "/api/v1/messages", queries=frozenset({"status", "direction", "to", "from", "campaignId", "pageSize"})
)
_GET = Operation("GET", "/api/v1/messages/{messageId}")
_SIMULATE_INBOUND = Operation("POST", "/api/v1/sandbox/inbound")


class MessagesResource(Resource):
    """Operations of `client.messages`."""

    def send(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.SendMessageFields]
    ) -> messages.SentMessage:
        """Send one message."""
        return self._transport.item(_SEND, (), fields, messages.SentMessage, idempotency_key)

    def list(self, **fields: Unpack[fields_of.ListChatMessagesFields]) -> Pages[messages.MessagesMessage]:
        """List messages, newest first."""
        return self._transport.pages(_LIST, (), fields, messages.MessagesMessage)

    def get(self, message_id: str, /) -> messages.MessagesMessage:
        """Get a message."""
        return self._transport.item(_GET, (message_id,), {}, messages.MessagesMessage)

    def simulate_inbound(self, **fields: Unpack[fields_of.SimulateInboundFields]) -> messages.MessagesMessage:
        """Simulate an inbound message to the account's channel."""
        return self._transport.item(_SIMULATE_INBOUND, (), fields, messages.MessagesMessage)


class AsyncMessagesResource(AsyncResource):
    """Operations of `client.messages`."""

    async def send(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.SendMessageFields]
    ) -> messages.SentMessage:
        """Send one message."""
        return await self._transport.item(_SEND, (), fields, messages.SentMessage, idempotency_key)

    def list(
        self, **fields: Unpack[fields_of.ListChatMessagesFields]
    ) -> AsyncPages[messages.MessagesMessage]:
        """List messages, newest first."""
        return self._transport.pages(_LIST, (), fields, messages.MessagesMessage)

    async def get(self, message_id: str, /) -> messages.MessagesMessage:
        """Get a message."""
        return await self._transport.item(_GET, (message_id,), {}, messages.MessagesMessage)

    async def simulate_inbound(
        self, **fields: Unpack[fields_of.SimulateInboundFields]
    ) -> messages.MessagesMessage:
        """Simulate an inbound message to the account's channel."""
        return await self._transport.item(_SIMULATE_INBOUND, (), fields, messages.MessagesMessage)
