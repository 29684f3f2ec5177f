"""All endpoints of the server, in the order of the specification's chapters."""

from __future__ import annotations

from itertools import chain
from typing import Any

from api.http.endpoint import Endpoint
from api.routes import (
    agents,
    applications,
    call_logs,
    calls,
    dids,
    keys,
    mcp,
    model_keys,
    numbers,
    otp,
    recordings,
    sandbox,
    stream_settings,
    subscriptions,
    tools,
    tools_admin,
    trunk_numbers,
    trunks,
    wallet,
    webrtc,
)
from api.routes.assistant import calls as assistant_calls
from api.routes.assistant import keys as assistant_keys
from api.routes.assistant import webhooks as assistant_webhooks
from api.routes.jambonz_api import applications as jambonz_applications
from api.routes.jambonz_api import calls as jambonz_calls
from api.routes.masking import calls as masked_calls
from api.routes.masking import logs as masking_logs
from api.routes.masking import sessions as masking_sessions
from api.routes.messaging import campaigns, contact_lists, contacts, messages, templates
from api.routes.messaging import webhooks as messaging_webhooks
from api.routes.twilio_api import calls as twilio_calls
from api.routes.twilio_api import conferences as twilio_conferences
from api.routes.twilio_api import messages as twilio_messages
from api.routes.twilio_api import recordings as twilio_recordings

__all__ = ["ENDPOINTS"]

_MODULES = (
    calls,
    sandbox,
    webrtc,
    mcp,
    twilio_calls,
    twilio_recordings,
    twilio_conferences,
    twilio_messages,
    jambonz_calls,
    jambonz_applications,
    dids,
    numbers,
    trunks,
    trunk_numbers,
    applications,
    call_logs,
    model_keys,
    otp,
    masked_calls,
    masking_sessions,
    masking_logs,
    recordings,
    tools,
    tools_admin,
    subscriptions,
    agents,
    stream_settings,
    assistant_calls,
    assistant_webhooks,
    assistant_keys,
    messages,
    wallet,
    keys,
    contacts,
    contact_lists,
    messaging_webhooks,
    campaigns,
    templates,
)
ENDPOINTS: tuple[Endpoint[Any, Any], ...] = tuple(
    chain.from_iterable(module.routes.endpoints for module in _MODULES)
)
