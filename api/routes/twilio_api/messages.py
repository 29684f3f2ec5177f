"""Messages in Twilio's interface, over the account's channel on the chat network."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from api.http.endpoint import Context, Reply, Routes
from api.http.errors import ErrorStyle
from api.routes.twilio_api.shapes import ACCOUNT, moment, numbered
from api.schemas.base import NoBody, NoQuery
from api.schemas.twilio_api.base import API_VERSION
from api.schemas.twilio_api.messages import (
    CreateTwilioMessage,
    TwilioMessage,
    TwilioMessageList,
    TwilioMessageQuery,
)
from callcontrol.errors import ChannelNotConfigured, SendFailed, ValidationFailed
from callcontrol.messaging.messages import SendMessage
from callcontrol.messaging.models import ChatMessage
from callcontrol.messaging.store.messages import MessageFilter
from callcontrol.models.money import CURRENCY

__all__ = ["routes"]

_ALL = f"{ACCOUNT}/Messages.json"
_ONE = f"{ACCOUNT}/Messages/{{messageSid}}.json"
_KINDS = ("image", "video", "audio")
_NAMES: Mapping[str, str] = {
    "to": "To",
    "text": "Body",
    "media.caption": "Body",
    "media.url": "MediaUrl",
    "media": "MediaUrl",
}
"""Twilio's name of each field that the domain may refuse."""
_UNKNOWN_ERROR = 30008
_CODES: Mapping[str, int] = {
    "NOT_ON_NETWORK": 63003,
    "NETWORK_UNAVAILABLE": 63012,
    "POLICY_VIOLATION": 63013,
    "OPTED_OUT": 21610,
}

routes = Routes(
    "messages.send",
    style=ErrorStyle.TWILIO,
    tag="messages, as Twilio's clients ask",
    service="messaging",
)


@routes.post(_ALL, success=201, response=TwilioMessage, errors=(ChannelNotConfigured,))
async def create_twilio_message(context: Context[CreateTwilioMessage, NoQuery]) -> Reply:
    """
    Send a message, as Twilio's clients do.

    One that the network refuses is kept, and shown as failed. The user name is the account_sid, the password
    a key of messaging or of all services.
    """
    body, account_sid = context.body, context.account_sid
    services = context.services
    if body.From != (await services.channels.of(account_sid)).number:
        raise ValidationFailed.of("From", "must be the number of the account's channel")
    if body.MediaUrl is None:
        wanted = SendMessage(to=body.To, type="text", text=body.Body)
    else:
        caption = {} if body.Body is None else {"caption": body.Body}
        media = {"type": _kind_of(body.MediaUrl), "url": body.MediaUrl, **caption}
        wanted = SendMessage(to=body.To, type="media", media=media)
    try:
        message = await services.messages.send(account_sid, wanted)
    except ValidationFailed as refusal:
        raise refusal.renamed(lambda field: _NAMES.get(field, field)) from refusal
    except SendFailed as failure:
        message = await services.messages.get(account_sid, failure.details["messageId"])
    return Reply(_shown(message))


@routes.get(_ALL, response=TwilioMessageList)
async def list_twilio_messages(context: Context[NoBody, TwilioMessageQuery]) -> Reply:
    """List messages in Twilio's shape, newest first."""
    query = context.query
    page = await context.services.messages.list(
        context.account_sid, MessageFilter(to=query.To, from_=query.From), query.Page + 1, query.PageSize
    )
    links = query.links(_ALL.format(sid=context.account_sid), has_next=page.page < page.total_pages)
    return Reply(numbered({"messages": [_shown(message) for message in page.items], **links}, "messages"))


@routes.get(_ONE, response=TwilioMessage)
async def get_twilio_message(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a message, in Twilio's shape."""
    return Reply(_shown(await context.services.messages.get(context.account_sid, context.path["messageSid"])))


def _kind_of(url: str) -> str:
    """Kind of a file by the extension in its URL; a document unless that says otherwise."""
    media_type, _ = mimetypes.guess_type(urlsplit(url).path)
    kind = (media_type or "").partition("/")[0]
    return kind if kind in _KINDS else "document"


def _shown(message: ChatMessage) -> dict[str, Any]:
    content = message.content
    media, interactive = content.get("media") or {}, content.get("interactive") or {}
    error = message.error_code
    updated = message.failed_at or message.read_at or message.delivered_at or message.sent_at
    return {
        "sid": message.message_id,
        "account_sid": message.account_sid,
        "from": message.from_,
        "to": message.to,
        "body": content.get("text") or media.get("caption") or interactive.get("body") or "",
        "status": message.status,
        "direction": "inbound" if message.direction == "inbound" else "outbound-api",
        "num_media": "1" if media else "0",
        "num_segments": "1",
        "error_code": None if error is None else _CODES.get(error, _UNKNOWN_ERROR),
        "error_message": message.error_message,
        "messaging_service_sid": None,
        "price": None,
        "price_unit": CURRENCY,
        "date_created": moment(message.created_at),
        "date_sent": moment(message.sent_at),
        "date_updated": moment(updated or message.created_at),
        "api_version": API_VERSION,
        "uri": _ONE.format(sid=message.account_sid, messageSid=message.message_id),
        "subresource_uris": {},
    }
