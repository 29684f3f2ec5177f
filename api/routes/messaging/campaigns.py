"""Campaigns (messaging specification)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from api.http.endpoint import Context, Reply
from api.routes.messaging.base import messaging_routes
from api.schemas.base import NoBody, NoQuery
from api.schemas.messaging.campaigns import CampaignList, CampaignObject, CreateCampaign, CreatedCampaign
from api.schemas.serializers import page_meta, shown
from callcontrol.errors import ChannelNotConfigured, Conflict, NotFound
from callcontrol.messaging.aio.campaigns import CampaignRequest, CampaignView
from callcontrol.messaging.campaigns import CampaignState, progress_percent

__all__ = ["routes"]

routes = messaging_routes("campaigns", "campaigns.read", "campaigns.create")


@routes.post(
    "/api/v1/send",
    response=CreatedCampaign,
    success=201,
    errors=(NotFound, ChannelNotConfigured, Conflict),
    idempotent=True,
)
async def send_campaign(context: Context[CreateCampaign, NoQuery]) -> Reply:
    """
    Send a template to many recipients.

    Numbers that are invalid, given twice, or of contacts who have opted out are left out and named in
    the answer. A draft is stored and sent by a later request.
    """
    body = context.body
    taken = await context.storage.campaigns.create(
        context.account_sid,
        CampaignRequest(
            name=body.campaign_name,
            template_name=body.template_name,
            language=body.language,
            phone_numbers=body.phone_numbers,
            variables=body.variables,
            immediately=body.send_immediately,
            scheduled_for=body.scheduled_for,
        ),
    )
    return Reply(
        {
            **_json(taken.view),
            "duplicates": list(taken.duplicates),
            "invalid": list(taken.invalid),
            "optedOut": list(taken.opted_out),
        }
    )


@routes.get("/api/v1/campaigns", response=CampaignObject, paged=True)
async def list_campaigns(context: Context[NoBody, CampaignList]) -> Reply:
    """List campaigns, newest first."""
    query = context.query
    state = None if query.status is None else CampaignState[query.status.upper()]
    page = await context.storage.campaigns.list(context.account_sid, state, query.page, query.page_size)
    return Reply([_json(view) for view in page.items], page_meta(page))


@routes.post(
    "/api/v1/campaigns/{campaignId}/send",
    response=CampaignObject,
    errors=(ChannelNotConfigured, Conflict),
)
async def send_draft(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Send a draft.

    One that runs already stays so.
    """
    return Reply(
        _json(await context.storage.campaigns.send(context.account_sid, context.number("campaignId")))
    )


@routes.post("/api/v1/campaigns/{campaignId}/cancel", response=CampaignObject, errors=(Conflict,))
async def cancel_campaign(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Cancel a campaign.

    What has not left yet is not sent. One that is cancelled already stays so.
    """
    return Reply(
        _json(await context.storage.campaigns.cancel(context.account_sid, context.number("campaignId")))
    )


@routes.get("/api/v1/{campaignId}/status", response=CampaignObject)
async def get_campaign_status(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Get how far a campaign is.

    The counts are of one moment and add up to the total.
    """
    return Reply(
        _json(await context.storage.campaigns.status(context.account_sid, context.number("campaignId")))
    )


def _json(view: CampaignView) -> dict[str, Any]:
    campaign, counts = view.campaign, view.counts
    cancelled = campaign.state is CampaignState.CANCELLED
    return shown(
        CampaignObject,
        campaign,
        campaign_name=campaign.name,
        status=campaign.state.status,
        counts=asdict(counts),
        progress=progress_percent(counts),
        completed_at=None if cancelled else campaign.ended_at,
        cancelled_at=campaign.ended_at if cancelled else None,
        estimated_completion_at=view.estimated_end,
    )
