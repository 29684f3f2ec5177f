"""
Interfaces of the domain services that the routes use, one module per chapter of the specification.

`api.process.server` supplies the real services.
"""

from __future__ import annotations

from dataclasses import dataclass

from api.services.access import Idempotency, Keys, StoredReply
from api.services.assistant import Agents, Assistant, AssistantKeys
from api.services.calls import CallLogs, Calls, Otp, Recordings
from api.services.campaigns import Campaigns
from api.services.contacts import ContactLists, Contacts
from api.services.events import Subscriptions
from api.services.masking import (
    Masking,
    MaskingLogs,
    MaskingNumbers,
    MaskingSessions,
    MaskingSettingsOfAccounts,
)
from api.services.mcp import Mcp
from api.services.messages import Messages
from api.services.money import Wallets
from api.services.numbers import Applications, Market, Numbers, TrunkNumbers, Trunks
from api.services.process import Lifecycle, Phase
from api.services.streams import StreamSettings
from api.services.templates import Channels, Templates
from api.services.tools import AppKeys, ToolRegistry, Tools, ToolUsage

__all__ = [
    "Agents",
    "AppKeys",
    "Applications",
    "Assistant",
    "AssistantKeys",
    "CallLogs",
    "Calls",
    "ContactLists",
    "Contacts",
    "Campaigns",
    "Channels",
    "Idempotency",
    "Keys",
    "Lifecycle",
    "Market",
    "Masking",
    "MaskingLogs",
    "MaskingNumbers",
    "MaskingSessions",
    "MaskingSettingsOfAccounts",
    "Mcp",
    "Messages",
    "Numbers",
    "Otp",
    "Phase",
    "Recordings",
    "Services",
    "StoredReply",
    "StreamSettings",
    "Subscriptions",
    "Templates",
    "TrunkNumbers",
    "ToolRegistry",
    "ToolUsage",
    "Tools",
    "Trunks",
    "Wallets",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """All services that the routes use."""

    keys: Keys
    mcp: Mcp
    calls: Calls
    numbers: Numbers
    market: Market
    trunks: Trunks
    otp: Otp
    recordings: Recordings
    masking: Masking
    masking_sessions: MaskingSessions
    masking_numbers: MaskingNumbers
    masking_logs: MaskingLogs
    masking_settings: MaskingSettingsOfAccounts
    stream_settings: StreamSettings
    masking_webhooks: Subscriptions
    trunk_numbers: TrunkNumbers
    applications: Applications
    wallets: Wallets
    call_logs: CallLogs
    tools: Tools
    tool_registry: ToolRegistry
    tool_usage: ToolUsage
    app_keys: AppKeys
    campaigns: Campaigns
    agents: Agents
    assistant: Assistant
    assistant_keys: AssistantKeys
    assistant_webhooks: Subscriptions
    messages: Messages
    subscriptions: Subscriptions
    contacts: Contacts
    contact_lists: ContactLists
    webhook_endpoints: Subscriptions
    templates: Templates
    channels: Channels
    idempotency: Idempotency
    lifecycle: Lifecycle
