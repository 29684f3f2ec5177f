# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.campaigns`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import campaigns as fields_of
from trunkline_client.generated.results import campaigns
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_SEND = Operation("POST", "/api/v1/send", idempotent=True)
_LIST = Operation("GET", "/api/v1/campaigns", queries=frozenset({"status", "pageSize"}))
_SEND_DRAFT = Operation("POST", "/api/v1/campaigns/{campaignId}/send")
_CANCEL = Operation("POST", "/api/v1/campaigns/{campaignId}/cancel")
_GET_STATUS = Operation("GET", "/api/v1/{campaignId}/status")


class CampaignsResource(Resource):
    """Operations of `client.campaigns`."""

    def send(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.SendCampaignFields]
    ) -> campaigns.CreatedCampaign:
        """Send a template to many recipients."""
        return self._transport.item(_SEND, (), fields, campaigns.CreatedCampaign, idempotency_key)

    def list(self, **fields: Unpack[fields_of.ListCampaignsFields]) -> Pages[campaigns.Campaign]:
        """List campaigns, newest first."""
        return self._transport.pages(_LIST, (), fields, campaigns.Campaign)

    def send_draft(self, campaign_id: int, /) -> campaigns.Campaign:
        """Send a draft."""
        return self._transport.item(_SEND_DRAFT, (campaign_id,), {}, campaigns.Campaign)

    def cancel(self, campaign_id: int, /) -> campaigns.Campaign:
        """Cancel a campaign."""
        return self._transport.item(_CANCEL, (campaign_id,), {}, campaigns.Campaign)

    def get_status(self, campaign_id: int, /) -> campaigns.Campaign:
        """Get how far a campaign is."""
        return self._transport.item(_GET_STATUS, (campaign_id,), {}, campaigns.Campaign)


class AsyncCampaignsResource(AsyncResource):
    """Operations of `client.campaigns`."""

    async def send(
        self, *, idempotency_key: str | None = None, **fields: Unpack[fields_of.SendCampaignFields]
    ) -> campaigns.CreatedCampaign:
        """Send a template to many recipients."""
        return await self._transport.item(_SEND, (), fields, campaigns.CreatedCampaign, idempotency_key)

    def list(self, **fields: Unpack[fields_of.ListCampaignsFields]) -> AsyncPages[campaigns.Campaign]:
        """List campaigns, newest first."""
        return self._transport.pages(_LIST, (), fields, campaigns.Campaign)

    async def send_draft(self, campaign_id: int, /) -> campaigns.Campaign:
        """Send a draft."""
        return await self._transport.item(_SEND_DRAFT, (campaign_id,), {}, campaigns.Campaign)

    async def cancel(self, campaign_id: int, /) -> campaigns.Campaign:
        """Cancel a campaign."""
        return await self._transport.item(_CANCEL, (campaign_id,), {}, campaigns.Campaign)

    async def get_status(self, campaign_id: int, /) -> campaigns.Campaign:
        """Get how far a campaign is."""
        return await self._transport.item(_GET_STATUS, (campaign_id,), {}, campaigns.Campaign)
