"""Campaigns, in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from callcontrol.errors import NotFound
from callcontrol.messaging.aio.campaigns import CampaignRequest, CampaignView, TakenCampaign
from callcontrol.messaging.campaigns import Campaign, CampaignCounts, CampaignState
from callcontrol.models import Page
from tests.support.api_facts import ACCOUNT, MOMENT

CAMPAIGN = CampaignView(
    Campaign(
        reference="0198c0de-0000-7000-8000-000000000001",
        account_sid=ACCOUNT,
        name="Diwali",
        template_id=3,
        template_name="festival_offer",
        language="en_US",
        body_parameters=("Asha",),
        total=3,
        created_at=MOMENT,
        starts_at=MOMENT,
        campaign_id=7,
        state=CampaignState.RUNNING,
        started_at=MOMENT,
    ),
    CampaignCounts(queued=2, delivered=1),
    MOMENT + timedelta(seconds=2),
)


class FakeCampaigns:
    def __init__(self) -> None:
        self.asked: list[CampaignRequest] = []
        self.view = CAMPAIGN

    async def create(self, account_sid: str, request: CampaignRequest) -> TakenCampaign:
        self.asked.append(request)
        return TakenCampaign(self.view, ("+91 98001 00001",), ("x",), ("+919800100002",))

    async def status(self, account_sid: str, campaign_id: int) -> CampaignView:
        if campaign_id != self.view.campaign.campaign_id:
            raise NotFound("There is no such campaign on the account.")
        return self.view

    async def list(
        self, account_sid: str, state: CampaignState | None, page: int, per_page: int
    ) -> Page[CampaignView]:
        found = [self.view] if state in (None, self.view.campaign.state) else []
        return Page(found, len(found), page, per_page)

    async def cancel(self, account_sid: str, campaign_id: int) -> CampaignView:
        view = await self.status(account_sid, campaign_id)
        cancelled = replace(view.campaign, state=CampaignState.CANCELLED, ended_at=MOMENT)
        self.view = CampaignView(cancelled, CampaignCounts(delivered=1, cancelled=2), None)
        return self.view
