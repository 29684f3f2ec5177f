"""
Records of the domain: accounts, keys, agents, applications, numbers, trunks, calls, money.

Identifiers are opaque UUID strings made by the caller; timestamps are aware UTC datetimes; money is integer
paise. All records are immutable except ``CallRecord``, its parts, and ``Delivery``. Secrets are left out of
every ``repr``.
"""

from callcontrol.models.accounts import Account, ApiKey, Environment, Principal, Service, StreamSecret
from callcontrol.models.agents import VoiceAgent
from callcontrol.models.applications import Application, InboundBinding
from callcontrol.models.calls import (
    CallFilter,
    CallRecord,
    CallStatus,
    Direction,
    DirectionQuality,
    HangupSource,
    LegQuality,
    Message,
    Quality,
    RecordingStatus,
    StreamInfo,
    TranscriptSegment,
)
from callcontrol.models.deliveries import (
    Attempt,
    Delivery,
    PublishedEvent,
    Recipient,
    SubscribedEvent,
    WebhookEvent,
)
from callcontrol.models.idempotency import InterruptedRequest, StoredReply
from callcontrol.models.lists import Page, Position
from callcontrol.models.money import CURRENCY, LedgerEntry, LedgerFilter, LedgerKind, Reserve, Wallet
from callcontrol.models.numbers import (
    HOW_TO_REGISTER,
    TEST_PREFIX,
    Billing,
    Binding,
    InboundTarget,
    NumberConfiguration,
    PhoneNumber,
)
from callcontrol.models.trunks import (
    Carrier,
    DtmfType,
    Gateway,
    IdentityHeader,
    MediaEncryption,
    NumberFormat,
    Protocol,
    Reliability,
    TrunkType,
)

__all__ = [
    "Account",
    "ApiKey",
    "Application",
    "Attempt",
    "Billing",
    "Binding",
    "SubscribedEvent",
    "CURRENCY",
    "CallFilter",
    "CallRecord",
    "CallStatus",
    "Carrier",
    "Delivery",
    "Direction",
    "DirectionQuality",
    "DtmfType",
    "Gateway",
    "Environment",
    "HOW_TO_REGISTER",
    "HangupSource",
    "IdentityHeader",
    "InboundBinding",
    "InboundTarget",
    "InterruptedRequest",
    "LedgerEntry",
    "LedgerFilter",
    "LedgerKind",
    "LegQuality",
    "Message",
    "MediaEncryption",
    "NumberFormat",
    "Page",
    "PhoneNumber",
    "Position",
    "Principal",
    "Protocol",
    "PublishedEvent",
    "Quality",
    "Recipient",
    "RecordingStatus",
    "Reliability",
    "Reserve",
    "Service",
    "StoredReply",
    "StreamInfo",
    "StreamSecret",
    "TEST_PREFIX",
    "TranscriptSegment",
    "TrunkType",
    "VoiceAgent",
    "Wallet",
    "WebhookEvent",
    "NumberConfiguration",
]
