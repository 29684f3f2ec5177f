"""Messages (messaging specification, POST /messages; the additive lists and the sandbox)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Identifiers, Reply
from api.routes.messaging.base import messaging_routes
from api.schemas.base import NoBody, NoQuery
from api.schemas.messaging.messages import (
    MessageList,
    MessageObject,
    SandboxInbound,
    SendMessageBody,
    SentMessage,
)
from api.schemas.serializers import page_meta, shown
from callcontrol.errors import ChannelNotConfigured, SendFailed
from callcontrol.messaging.messages import SendMessage
from callcontrol.messaging.models import ChatMessage
from callcontrol.messaging.store.messages import MessageFilter

__all__ = ["routes", "sent_json"]

_PARTS = ("text", "template", "media", "interactive")

_MESSAGES = "/api/v1/messages"

routes = messaging_routes("messages", "messages.send", identifiers=Identifiers.UUID)


@routes.post(
    _MESSAGES, response=SentMessage, errors=(ChannelNotConfigured, SendFailed), bare=True, idempotent=True
)
async def send_message(context: Context[SendMessageBody, NoQuery]) -> Reply:
    """
    Send one message.

    Exactly the part that the type requires is given. The message is kept before the network is asked;
    502 says that the network did not take it. What becomes of it is told by webhooks.
    """
    given = context.body.model_dump(by_alias=True, exclude_none=True)
    message = await context.services.messages.send(context.account_sid, SendMessage(**given))
    return Reply(sent_json(message))


@routes.get(_MESSAGES, response=MessageObject, paged=True)
async def list_chat_messages(context: Context[NoBody, MessageList]) -> Reply:
    """List messages, newest first."""
    query = context.query
    wanted = MessageFilter(
        status=query.status,
        direction=query.direction,
        to=query.to,
        from_=query.from_,
        campaign_id=query.campaign_id,
    )
    page = await context.services.messages.list(context.account_sid, wanted, query.page, query.page_size)
    return Reply([_json(message) for message in page.items], page_meta(page))


@routes.get(_MESSAGES + "/{messageId}", response=MessageObject)
async def get_chat_message(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a message."""
    found = await context.services.messages.get(context.account_sid, context.path["messageId"])
    return Reply(_json(found))


@routes.post("/api/v1/sandbox/inbound", response=MessageObject, success=201)
async def simulate_inbound(context: Context[SandboxInbound, NoQuery]) -> Reply:
    """
    Simulate an inbound message to the account's channel.

    STOP and words like it have the sender opt out; START has them opt in again.
    """
    body = context.body
    return Reply(_json(await context.services.messages.simulate(context.account_sid, body.from_, body.text)))


def sent_json(message: ChatMessage) -> dict[str, Any]:
    """Response to the sender of a message."""
    return shown(SentMessage, message, success=True, timestamp=message.created_at)


def _json(message: ChatMessage) -> dict[str, Any]:
    error = None
    if message.error_code is not None:
        error = {"code": message.error_code, "message": message.error_message}
    parts = {part: message.content.get(part) for part in _PARTS}
    return shown(MessageObject, message, error=error, **parts)
