"""In-memory services behind the application, with what tests need to look at or to break."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from api.process.lifecycle import Lifecycle, Phase
from callcontrol.agents.aio.service import AgentService
from callcontrol.applications.aio import ApplicationService
from callcontrol.messaging.aio.contacts import ContactListService, ContactService
from callcontrol.numbers.aio.trunk_numbers import TrunkNumberService
from tests.support.api_facts import (
    ACCOUNT,
    AGENT_ID,
    APP_SID,
    CALL_SID,
    CARRIER_SID,
    ENDED_SID,
    GATEWAY_SID,
    KEY,
    MESSAGING_KEY,
    MOMENT,
    NOWHERE,
    NUMBER_ID,
    OTHER_ACCOUNT,
    OTHER_AGENT_ID,
    OTHER_APP_SID,
    OTHER_CALL_SID,
    OTHER_CARRIER_SID,
    OTP_ID,
    READER_KEY,
    REVOKED_KEY,
    SCOPES,
    TOOLS_KEY,
)
from tests.unit.api.fakes.access import FakeIdempotency, FakeKeys, FakeReply, FakeWallets
from tests.unit.api.fakes.assistant import FakeAssistant, FakeAssistantKeys
from tests.unit.api.fakes.calls import CALL_LOG, FakeCallLogs, FakeCalls, FakeTraceEntry, call
from tests.unit.api.fakes.campaigns import FakeCampaigns
from tests.unit.api.fakes.masking import FakeMasking, FakeMaskingLogs, FakeMaskingSettings
from tests.unit.api.fakes.masking_sessions import FakeMaskingNumbers, FakeMaskingSessions
from tests.unit.api.fakes.mcp import FakeMcp
from tests.unit.api.fakes.messages import MESSAGE_ID, FakeMessages
from tests.unit.api.fakes.numbers import FakeMarket, FakeNumbers
from tests.unit.api.fakes.products import FakeOtp
from tests.unit.api.fakes.recordings import FakeRecordings
from tests.unit.api.fakes.subscriptions import DELIVERY_ID, SUBSCRIPTION_ID, FakeSubscriptions
from tests.unit.api.fakes.templates import FakeChannels, FakeTemplates
from tests.unit.api.fakes.tools import FakeAppKeys, FakeToolRegistry, FakeTools, FakeToolUsage
from tests.unit.api.fakes.trunks import FakeTrunks

__all__ = [
    "ACCOUNT",
    "AGENT_ID",
    "APP_SID",
    "CALL_LOG",
    "CALL_SID",
    "CARRIER_SID",
    "DELIVERY_ID",
    "ENDED_SID",
    "FakeCallLogs",
    "FakeCalls",
    "FakeCampaigns",
    "FakeIdempotency",
    "FakeKeys",
    "FakeMarket",
    "FakeMcp",
    "FakeMasking",
    "FakeMaskingNumbers",
    "FakeMaskingSessions",
    "FakeAssistant",
    "FakeAssistantKeys",
    "FakeMaskingLogs",
    "FakeMaskingSettings",
    "FakeMessages",
    "FakeNumbers",
    "FakeOtp",
    "FakeRecordings",
    "FakeReply",
    "FakeSubscriptions",
    "FakeTraceEntry",
    "FakeTrunks",
    "FakeWallets",
    "Fakes",
    "GATEWAY_SID",
    "KEY",
    "MESSAGE_ID",
    "MESSAGING_KEY",
    "MOMENT",
    "NOWHERE",
    "NUMBER_ID",
    "OTHER_ACCOUNT",
    "OTHER_AGENT_ID",
    "OTHER_APP_SID",
    "OTHER_CALL_SID",
    "OTHER_CARRIER_SID",
    "OTP_ID",
    "READER_KEY",
    "REVOKED_KEY",
    "SCOPES",
    "TOOLS_KEY",
    "SUBSCRIPTION_ID",
    "call",
]


@dataclass
class Fakes:
    keys: FakeKeys = field(default_factory=FakeKeys)
    calls: FakeCalls = field(default_factory=FakeCalls)
    numbers: FakeNumbers = field(default_factory=FakeNumbers)
    market: FakeMarket = field(default_factory=FakeMarket)
    trunks: FakeTrunks = field(default_factory=FakeTrunks)
    otp: FakeOtp = field(default_factory=FakeOtp)
    recordings: FakeRecordings = field(default_factory=FakeRecordings)
    masking: FakeMasking = field(default_factory=FakeMasking)
    masking_sessions: FakeMaskingSessions = field(default_factory=FakeMaskingSessions)
    masking_numbers: FakeMaskingNumbers = field(default_factory=FakeMaskingNumbers)
    masking_logs: FakeMaskingLogs = field(default_factory=FakeMaskingLogs)
    masking_settings: FakeMaskingSettings = field(default_factory=FakeMaskingSettings)
    masking_webhooks: FakeSubscriptions = field(default_factory=FakeSubscriptions)
    trunk_numbers: TrunkNumberService | None = None
    applications: ApplicationService | None = None
    call_logs: FakeCallLogs = field(default_factory=FakeCallLogs)
    campaigns: FakeCampaigns = field(default_factory=FakeCampaigns)
    agents: AgentService | None = None
    assistant: FakeAssistant = field(default_factory=FakeAssistant)
    assistant_keys: FakeAssistantKeys = field(default_factory=FakeAssistantKeys)
    assistant_webhooks: FakeSubscriptions = field(default_factory=lambda: FakeSubscriptions("assistant"))
    messages: FakeMessages = field(default_factory=FakeMessages)
    webhook_endpoints: FakeSubscriptions = field(default_factory=lambda: FakeSubscriptions("messaging"))
    subscriptions: FakeSubscriptions = field(default_factory=FakeSubscriptions)
    contacts: ContactService | None = None
    contact_lists: ContactListService | None = None
    templates: FakeTemplates = field(default_factory=FakeTemplates)
    channels: FakeChannels = field(default_factory=FakeChannels)
    wallets: FakeWallets = field(default_factory=FakeWallets)
    tools: FakeTools = field(default_factory=FakeTools)
    tool_registry: FakeToolRegistry = field(default_factory=FakeToolRegistry)
    tool_usage: FakeToolUsage = field(default_factory=FakeToolUsage)
    app_keys: FakeAppKeys = field(default_factory=FakeAppKeys)
    idempotency: FakeIdempotency = field(default_factory=FakeIdempotency)
    mcp: FakeMcp = field(default_factory=FakeMcp)
    lifecycle: Lifecycle = field(default_factory=lambda: Lifecycle(Phase.READY))

    def services(self) -> Any:
        """Services as the application takes them."""
        storage = SimpleNamespace(**vars(self), wallet=self.wallets)
        tools = SimpleNamespace(
            service=self.tools, registry=self.tool_registry, usage=self.tool_usage, app_keys=self.app_keys
        )
        return SimpleNamespace(**{**vars(self), "storage": storage, "tools": tools})
