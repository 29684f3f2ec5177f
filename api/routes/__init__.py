"""Every endpoint of the server, chapter by chapter of the specification."""

from __future__ import annotations

from typing import Any

from api.endpoint import Endpoint
from api.routes import (
    agents,
    applications,
    assistant,
    assistant_keys,
    assistant_webhooks,
    call_logs,
    calls,
    dids,
    masking,
    masking_logs,
    masking_sessions,
    masking_webhook,
    mcp,
    numbers,
    otp,
    recordings,
    stream_settings,
    subscriptions,
    tools,
    tools_admin,
    trunk_numbers,
    trunks,
    twilio,
    wallet,
)
from api.routes.messaging import campaigns, contact_lists, contacts, messages, templates
from api.routes.messaging import webhooks as messaging_webhooks

__all__ = ["ENDPOINTS"]

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    *calls.ENDPOINTS,
    *mcp.ENDPOINTS,
    *twilio.ENDPOINTS,
    *dids.ENDPOINTS,
    *numbers.ENDPOINTS,
    *trunks.ENDPOINTS,
    *trunk_numbers.ENDPOINTS,
    *applications.ENDPOINTS,
    *call_logs.ENDPOINTS,
    *otp.ENDPOINTS,
    *masking.ENDPOINTS,
    *masking_sessions.ENDPOINTS,
    *masking_logs.ENDPOINTS,
    *masking_webhook.ENDPOINTS,
    *recordings.ENDPOINTS,
    *tools.ENDPOINTS,
    *tools_admin.ENDPOINTS,
    *subscriptions.ENDPOINTS,
    *agents.ENDPOINTS,
    *stream_settings.ENDPOINTS,
    *assistant.ENDPOINTS,
    *assistant_webhooks.ENDPOINTS,
    *assistant_keys.ENDPOINTS,
    *messages.ENDPOINTS,
    *wallet.ENDPOINTS,
    *contacts.ENDPOINTS,
    *contact_lists.ENDPOINTS,
    *messaging_webhooks.ENDPOINTS,
    *campaigns.ENDPOINTS,
    *templates.ENDPOINTS,
)
