"""Templates and channels of messaging, as the routes use them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from callcontrol.messaging.models import Channel, Template, TemplateCategory, TemplateStatus
from callcontrol.models import Page

__all__ = ["Channels", "Templates"]


class Templates(Protocol):
    """Templates of accounts; see ``callcontrol.messaging.aio.templates.TemplateService``."""

    async def create(
        self, account_sid: str, *, name: str, category: TemplateCategory, language: str, body: str
    ) -> Template:
        """Create a template and submit it for review."""

    async def list(
        self, account_sid: str, statuses: Collection[TemplateStatus], page: int, per_page: int
    ) -> Page[Template]:
        """Templates of the account that have one of the statuses, newest first."""

    async def get(self, account_sid: str, template_id: int) -> Template:
        """One template."""

    async def sync(self, account_sid: str, template_id: int) -> Template:
        """Refresh a template from the network, and return it."""

    async def delete(self, account_sid: str, template_id: int) -> None:
        """Delete a template."""


class Channels(Protocol):
    """Sending channels of accounts; see ``callcontrol.messaging.aio.channels.ChannelService``."""

    async def of(self, account_sid: str) -> Channel:
        """The channel of an account."""

    async def update(self, account_sid: str, values: Mapping[str, Any]) -> Channel:
        """Change a channel; `values` are its attributes, None resets one to its default."""
