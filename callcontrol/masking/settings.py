"""What an account has set for its masked calls: where webhooks go, who routes them, whether to record."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final

from callcontrol.webhooks.subscriptions import SubscribedService

__all__ = ["SERVICE", "UNCHANGED", "MaskingSettings", "SettingsChange", "Unchanged"]

SERVICE: Final[SubscribedService] = "masking"
"""Whose events the subscription of the masking webhook takes."""


class Unchanged(Enum):
    """What a change says of a setting that it leaves as it is."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingSettings:
    """
    The settings of one account; an account that has set nothing has the defaults.

    Attributes:
        subscription_id: The subscription that the masking webhook is, None without one.
        webhook_url: Where events of masked calls go, None when they go nowhere.
        webhook_secret: What they are signed with, None for the secret of the account.
        webhook_active: False while the webhook is paused, by the account or because its server wants no more.
        routing_url: Who is asked where an inbound call goes that no session knows.
        record_calls: Whether calls are recorded that do not say so themselves.
        updated_at: When any of it was last changed, None for never.
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
        """Where events of a call that begins now go; None when there is no webhook, or it is paused."""
        return self.webhook_url if self.webhook_active else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """What is to become of the settings; None takes a setting away."""

    webhook_url: str | None | Unchanged = UNCHANGED
    webhook_secret: str | None | Unchanged = field(default=UNCHANGED, repr=False)
    webhook_active: bool | Unchanged = UNCHANGED
    routing_url: str | None | Unchanged = UNCHANGED
    record_calls: bool | Unchanged = UNCHANGED
