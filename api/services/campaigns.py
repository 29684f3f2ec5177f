"""Campaigns, as the routes use them."""

from __future__ import annotations

from typing import Protocol

from callcontrol.messaging.aio.campaigns import CampaignRequest, CampaignView, TakenCampaign
from callcontrol.messaging.campaigns import CampaignState
from callcontrol.models import Page

__all__ = ["Campaigns"]


class Campaigns(Protocol):
    """Campaigns; see ``callcontrol.messaging.aio.campaigns.CampaignService``."""

    async def create(self, account_sid: str, request: CampaignRequest) -> TakenCampaign:
        """Accept a campaign."""

    async def status(self, account_sid: str, campaign_id: int) -> CampaignView:
        """Return the state and progress of a campaign."""

    async def list(
        self, account_sid: str, state: CampaignState | None, page: int, per_page: int
    ) -> Page[CampaignView]:
        """The account's campaigns, newest first."""

    async def cancel(self, account_sid: str, campaign_id: int) -> CampaignView:
        """Cancel the messages of a campaign that are not sent yet."""
