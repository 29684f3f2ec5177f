"""Stored values of messaging; ids of templates, campaigns and contacts are whole numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

MessageType = Literal["text", "template", "media", "buttons", "list"]
MessageStatus = Literal["queued", "sent", "delivered", "read", "failed", "received"]
"""
A message moves from left to right only and may skip states.

``failed`` follows ``queued`` or ``sent``. A message written to the account is ``received``.
"""
TemplateStatus = Literal["PENDING", "APPROVED", "REJECTED", "PAUSED"]
TemplateCategory = Literal["MARKETING", "UTILITY", "AUTHENTICATION"]
CampaignStatus = Literal["draft", "scheduled", "running", "completed", "failed", "cancelled"]

SANDBOX_NUMBER: Final = "+918001100000"
"""Sender of an account without a number of its own, or whose number it does not own any more."""

DEFAULT_DISPLAY_NAME: Final = "Sandbox"
DEFAULT_MESSAGES_PER_SECOND: Final = 80
MAX_DISPLAY_NAME_CHARACTERS: Final = 128
MAX_MESSAGES_PER_SECOND: Final = 1000


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """
    A message to one recipient, or (``inbound``) from one.

    ``content`` holds what its type requires, spelled as in the API: ``text``, ``template``, ``media`` or
    ``interactive``. ``to`` and ``from_`` are E.164; ``from_`` of an outbound message is the channel's number.
    ``due_at`` is the earliest time it may leave, ``network_ref`` the network's name of it.
    """

    message_id: str
    account_sid: str
    direction: Literal["outbound", "inbound"]
    from_: str
    to: str
    type: MessageType
    content: Mapping[str, Any] = field(repr=False)
    status: MessageStatus
    created_at: datetime
    due_at: datetime
    campaign_id: int | None = None
    network_ref: str | None = None
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    read_at: datetime | None = None
    failed_at: datetime | None = None
    error_code: str | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """
    A text with variables ``{{1}}`` to ``{{n}}`` that the network has to approve before it may be sent.

    ``reference`` is the server's name of it at the network, and ``network_ref`` the network's own, None until
    the network has accepted it. ``updated_at`` is when the status last changed.
    """

    template_id: int
    account_sid: str
    name: str
    language: str
    category: TemplateCategory
    body: str
    variables: int
    status: TemplateStatus
    created_at: datetime
    updated_at: datetime
    reference: str = ""
    network_ref: str | None = None
    rejection_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Contact:
    """A person an account writes to, by phone number; a contact who has opted out is sent nothing."""

    contact_id: int
    account_sid: str
    phone_number: str
    created_at: datetime
    updated_at: datetime
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    custom_fields: Mapping[str, Any] = field(default_factory=dict)
    notes: str | None = None
    opted_out: bool = False


@dataclass(frozen=True, slots=True)
class Channel:
    """Sender of an account's messages: its number on the network, and its sending rate."""

    account_sid: str
    number: str
    display_name: str
    is_connected: bool
    messages_per_second: int
