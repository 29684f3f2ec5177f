"""Events of all services that can be subscribed to."""

from __future__ import annotations

from callcontrol.assistant.calls import EVENTS as ASSISTANT
from callcontrol.masking.settings import EVENTS as MASKING
from callcontrol.messaging.events import EVENTS as MESSAGING
from callcontrol.webhooks.subscriptions import CALL_EVENTS

SERVICE_EVENTS = {events.service: events for events in (CALL_EVENTS, MASKING, ASSISTANT, MESSAGING)}
