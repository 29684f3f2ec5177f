"""Recipients of a campaign become messages, in the transaction that says that they have."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.messaging.campaigns import Campaign, stretch_size
from callcontrol.messaging.events import message_told
from callcontrol.messaging.models import Channel, ChatMessage
from callcontrol.store.repositories import campaigns, channels, chat_messages, contacts, fan_out, templates

__all__ = ["Made", "make_stretch"]

_Reason = tuple[str, str]

_DISCONNECTED: Final = ("CHANNEL_NOT_CONFIGURED", "The account's channel is not connected.")
_NOT_APPROVED: Final = ("TEMPLATE_NOT_APPROVED", "The template is not approved any more.")
_OPTED_OUT: Final = ("OPTED_OUT", "The contact has opted out.")


@dataclass(frozen=True, slots=True)
class Made:
    """How many recipients became messages, and whether events were published."""

    count: int = 0
    published: bool = False


def make_stretch(
    connection: Connection, campaign_id: int, now: datetime, default_rate: int, new_id: Callable[[], str]
) -> Made:
    """
    Make messages of the next recipients of a campaign whose time has come.

    To whom may not be sent any more is made a message that has failed, with the reason: who has opted out
    since, and everybody while the template is not approved or the channel not connected.
    """
    campaign = campaigns.get(connection, campaign_id)
    if campaign is None or not campaign.state.is_open or campaign.made >= campaign.total:
        return Made()
    channel = channels.channel_of(connection, campaign.account_sid, default_rate=default_rate)
    size = stretch_size(campaigns.queued(connection, campaign_id), channel.messages_per_second)
    if size == 0:
        return Made()
    stretch = campaigns.take(connection, campaign, size, now)
    refusal = _refusal(connection, stretch.campaign, channel)
    opted_out = contacts.opted_out(connection, campaign.account_sid, stretch.recipients)
    made = [
        _message(
            stretch.campaign, channel, new_id(), to, now, refusal or (_OPTED_OUT if to in opted_out else None)
        )
        for to in stretch.recipients
    ]
    chat_messages.insert_many(connection, made)
    told = [event for message in made if (event := message_told(message, now)) is not None]
    fan_out.publish(connection, told)
    settled = campaigns.moved(connection, [campaign_id], now)
    return Made(len(made), published=bool(told) or settled)


def _refusal(connection: Connection, campaign: Campaign, channel: Channel) -> _Reason | None:
    """Why nothing of a campaign may be sent at present."""
    if not channel.is_connected:
        return _DISCONNECTED
    usable = templates.usable(
        connection, campaign.account_sid, campaign.template_name, campaign.language, hold=True
    )
    # One that was deleted and made anew is another template, with other words.
    if usable is None or usable.template_id != campaign.template_id:
        return _NOT_APPROVED
    return None


def _message(
    campaign: Campaign, channel: Channel, message_id: str, to: str, now: datetime, refusal: _Reason | None
) -> ChatMessage:
    template = {
        "name": campaign.template_name,
        "language": campaign.language,
        "bodyParameters": list(campaign.body_parameters),
    }
    code, reason = refusal or (None, None)
    return ChatMessage(
        message_id=message_id,
        account_sid=campaign.account_sid,
        direction="outbound",
        from_=channel.number,
        to=to,
        type="template",
        content={"template": template},
        status="queued" if refusal is None else "failed",
        created_at=now,
        due_at=now,
        campaign_id=campaign.campaign_id,
        failed_at=None if refusal is None else now,
        error_code=code,
        error_message=reason,
    )
