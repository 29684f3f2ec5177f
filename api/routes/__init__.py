"""All endpoints of the server, in the order of the specification's chapters."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Endpoint
from api.routes import (
    agents,
    applications,
    call_logs,
    calls,
    dids,
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
from api.routes.assistant import calls as assistant_calls
from api.routes.assistant import keys as assistant_keys
from api.routes.assistant import webhooks as assistant_webhooks
from api.routes.masking import calls as masked_calls
from api.routes.masking import logs as masking_logs
from api.routes.masking import sessions as masking_sessions
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
    *masked_calls.ENDPOINTS,
    *masking_sessions.ENDPOINTS,
    *masking_logs.ENDPOINTS,
    *recordings.ENDPOINTS,
    *tools.ENDPOINTS,
    *tools_admin.ENDPOINTS,
    *subscriptions.ENDPOINTS,
    *agents.ENDPOINTS,
    *stream_settings.ENDPOINTS,
    *assistant_calls.ENDPOINTS,
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
