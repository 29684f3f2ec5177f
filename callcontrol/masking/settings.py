"""Settings of an account for its masked calls: webhook, routing and recording."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, get_args

from callcontrol.masking.calls import MaskedStatus
from callcontrol.webhooks.subscriptions import ServiceEvents

EVENTS: Final = ServiceEvents(
    "masking",
    tuple(f"masking.call.{status}" for status in get_args(MaskedStatus)),
    called="masking webhook",
    switch="webhook_active",
)
"""Events that the masking webhook subscribes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingSettings:
    """
    The settings of one account; the defaults if it has set nothing.

    Attributes:
        subscription_id: The subscription of the masking webhook, None without one.
        webhook_url: Receives events of masked calls, None for no receiver.
        webhook_secret: Signs the events, None for the secret of the account.
        webhook_active: False while the webhook is paused, by the account or because its server wants no more.
        routing_url: Asked for the target of an inbound call that matches no session.
        record_calls: Default for calls that do not choose: True if they are recorded.
        updated_at: Time of the last change, None for never.
    """

    account_sid: str
    subscription_id: str | None = None
    webhook_url: str | None = None
    webhook_secret: str | None = field(default=None, repr=False)
    webhook_active: bool = True
    routing_url: str | None = None
    record_calls: bool = True
    updated_at: datetime | None = None

    @property
    def events_to(self) -> str | None:
        """URL for events of a call that begins now; None when there is no webhook, or it is paused."""
        return self.webhook_url if self.webhook_active else None
