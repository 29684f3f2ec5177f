"""Checks for messages that must not be sent any more, by changes since they were accepted."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.messaging.campaigns import CANCELLED_REASON, CampaignState
from callcontrol.messaging.models import ChatMessage
from callcontrol.messaging.store import campaigns, channels, contacts, templates
from callcontrol.messaging.store import messages as chat_messages

Reason = tuple[str, str]
"""Reason that a message is not sent: its error code and a readable message."""

_CANCELLED: Final[Reason] = (chat_messages.CANCELLED, CANCELLED_REASON)
_DISCONNECTED: Final[Reason] = ("CHANNEL_NOT_CONFIGURED", "The account's channel is not connected.")
_NOT_APPROVED: Final[Reason] = ("TEMPLATE_NOT_APPROVED", "The template is not approved any more.")
_OPTED_OUT: Final[Reason] = ("OPTED_OUT", "The contact has opted out.")


def send_refusals(connection: Connection, messages: Sequence[ChatMessage]) -> dict[str, Reason]:
    """
    The messages that must not be sent, by their identifiers, each with the reason of its failure.

    These are the messages of a cancelled campaign, all of an account whose channel is not connected, those
    that use a template that is not approved any more, and those to contacts who have opted out.
    """
    # Messages handed over together often share accounts and campaigns: each is looked up once.
    campaign_of = cache(partial(campaigns.get, connection))
    connected = cache(lambda sid: channels.channel_of(connection, sid).is_connected)
    approved = cache(partial(_template_id, connection))
    opted_out = {
        sid: contacts.opted_out(connection, sid, [each.to for each in messages if each.account_sid == sid])
        for sid in {message.account_sid for message in messages}
    }
    found: dict[str, Reason] = {}
    for message in messages:
        campaign = campaign_of(message.campaign_id) if message.campaign_id is not None else None
        reason: Reason | None = None
        if campaign is not None and campaign.state is CampaignState.CANCELLED:
            reason = _CANCELLED
        elif not connected(message.account_sid):
            reason = _DISCONNECTED
        elif message.to in opted_out[message.account_sid]:
            reason = _OPTED_OUT
        elif message.type == "template":
            reason = _template_refusal(message, approved, None if campaign is None else campaign.template_id)
        if reason is not None:
            found[message.message_id] = reason
    return found


def _template_refusal(
    message: ChatMessage, approved: Callable[[str, str, str], int | None], meant: int | None
) -> Reason | None:
    """Check the template; a campaign's template that was deleted and created again has another text."""
    template = message.content["template"]
    found = approved(message.account_sid, template["name"], template["language"])
    return None if found is not None and meant in (None, found) else _NOT_APPROVED


def _template_id(connection: Connection, account_sid: str, name: str, language: str) -> int | None:
    template = templates.usable(connection, account_sid, name, language, hold=True)
    return None if template is None else template.template_id
