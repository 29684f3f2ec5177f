# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""All resources of a client."""

from __future__ import annotations

from trunkline_client.generated.resources.account import AsyncAccountResource, AccountResource
from trunkline_client.generated.resources.agents import AsyncAgentsResource, AgentsResource
from trunkline_client.generated.resources.app_keys import AsyncAppKeysResource, AppKeysResource
from trunkline_client.generated.resources.applications import AsyncApplicationsResource, ApplicationsResource
from trunkline_client.generated.resources.assistant import AsyncAssistantResource, AssistantResource
from trunkline_client.generated.resources.assistant_keys import AsyncAssistantKeysResource, AssistantKeysResource
from trunkline_client.generated.resources.assistant_webhooks import AsyncAssistantWebhooksResource, AssistantWebhooksResource
from trunkline_client.generated.resources.calls import AsyncCallsResource, CallsResource
from trunkline_client.generated.resources.campaigns import AsyncCampaignsResource, CampaignsResource
from trunkline_client.generated.resources.contact_lists import AsyncContactListsResource, ContactListsResource
from trunkline_client.generated.resources.contacts import AsyncContactsResource, ContactsResource
from trunkline_client.generated.resources.keys import AsyncKeysResource, KeysResource
from trunkline_client.generated.resources.managed_tools import AsyncManagedToolsResource, ManagedToolsResource
from trunkline_client.generated.resources.masking import AsyncMaskingResource, MaskingResource
from trunkline_client.generated.resources.messages import AsyncMessagesResource, MessagesResource
from trunkline_client.generated.resources.model_keys import AsyncModelKeysResource, ModelKeysResource
from trunkline_client.generated.resources.numbers import AsyncNumbersResource, NumbersResource
from trunkline_client.generated.resources.otp import AsyncOtpResource, OtpResource
from trunkline_client.generated.resources.recordings import AsyncRecordingsResource, RecordingsResource
from trunkline_client.generated.resources.sandbox import AsyncSandboxResource, SandboxResource
from trunkline_client.generated.resources.streams import AsyncStreamsResource, StreamsResource
from trunkline_client.generated.resources.subscriptions import AsyncSubscriptionsResource, SubscriptionsResource
from trunkline_client.generated.resources.templates import AsyncTemplatesResource, TemplatesResource
from trunkline_client.generated.resources.tool_usage import AsyncToolUsageResource, ToolUsageResource
from trunkline_client.generated.resources.tools import AsyncToolsResource, ToolsResource
from trunkline_client.generated.resources.trunks import AsyncTrunksResource, TrunksResource
from trunkline_client.generated.resources.wallet import AsyncWalletResource, WalletResource
from trunkline_client.generated.resources.webhook_endpoints import AsyncWebhookEndpointsResource, WebhookEndpointsResource
from trunkline_client.generated.resources.webrtc import AsyncWebrtcResource, WebrtcResource
from trunkline_client.transport import AsyncTransport, Transport


class Resources:
    """Each resource of the API is an attribute."""

    def __init__(self, transport: Transport) -> None:
        self.account = AccountResource(transport)
        self.agents = AgentsResource(transport)
        self.app_keys = AppKeysResource(transport)
        self.applications = ApplicationsResource(transport)
        self.assistant = AssistantResource(transport)
        self.assistant_keys = AssistantKeysResource(transport)
        self.assistant_webhooks = AssistantWebhooksResource(transport)
        self.calls = CallsResource(transport)
        self.campaigns = CampaignsResource(transport)
        self.contact_lists = ContactListsResource(transport)
        self.contacts = ContactsResource(transport)
        self.keys = KeysResource(transport)
        self.managed_tools = ManagedToolsResource(transport)
        self.masking = MaskingResource(transport)
        self.messages = MessagesResource(transport)
        self.model_keys = ModelKeysResource(transport)
        self.numbers = NumbersResource(transport)
        self.otp = OtpResource(transport)
        self.recordings = RecordingsResource(transport)
        self.sandbox = SandboxResource(transport)
        self.streams = StreamsResource(transport)
        self.subscriptions = SubscriptionsResource(transport)
        self.templates = TemplatesResource(transport)
        self.tool_usage = ToolUsageResource(transport)
        self.tools = ToolsResource(transport)
        self.trunks = TrunksResource(transport)
        self.wallet = WalletResource(transport)
        self.webhook_endpoints = WebhookEndpointsResource(transport)
        self.webrtc = WebrtcResource(transport)


class AsyncResources:
    """Each resource of the API is an attribute."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.account = AsyncAccountResource(transport)
        self.agents = AsyncAgentsResource(transport)
        self.app_keys = AsyncAppKeysResource(transport)
        self.applications = AsyncApplicationsResource(transport)
        self.assistant = AsyncAssistantResource(transport)
        self.assistant_keys = AsyncAssistantKeysResource(transport)
        self.assistant_webhooks = AsyncAssistantWebhooksResource(transport)
        self.calls = AsyncCallsResource(transport)
        self.campaigns = AsyncCampaignsResource(transport)
        self.contact_lists = AsyncContactListsResource(transport)
        self.contacts = AsyncContactsResource(transport)
        self.keys = AsyncKeysResource(transport)
        self.managed_tools = AsyncManagedToolsResource(transport)
        self.masking = AsyncMaskingResource(transport)
        self.messages = AsyncMessagesResource(transport)
        self.model_keys = AsyncModelKeysResource(transport)
        self.numbers = AsyncNumbersResource(transport)
        self.otp = AsyncOtpResource(transport)
        self.recordings = AsyncRecordingsResource(transport)
        self.sandbox = AsyncSandboxResource(transport)
        self.streams = AsyncStreamsResource(transport)
        self.subscriptions = AsyncSubscriptionsResource(transport)
        self.templates = AsyncTemplatesResource(transport)
        self.tool_usage = AsyncToolUsageResource(transport)
        self.tools = AsyncToolsResource(transport)
        self.trunks = AsyncTrunksResource(transport)
        self.wallet = AsyncWalletResource(transport)
        self.webhook_endpoints = AsyncWebhookEndpointsResource(transport)
        self.webrtc = AsyncWebrtcResource(transport)
