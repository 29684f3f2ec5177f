"""Buying phone numbers (telephony specification, phone numbers)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.schemas.base import NoBody, NoQuery
from api.schemas.dids import (
    ListingObject,
    ListingSearch,
    PurchaseBody,
    PurchaseObject,
    purchase_json,
    to_paise,
)
from api.schemas.serializers import page_meta, shown
from callcontrol.errors import InsufficientBalance, KycRequired, NotFound, NumberTaken, QuoteStale
from callcontrol.models import CURRENCY
from callcontrol.numbers.inventory import Listing, ListingFilter
from callcontrol.numbers.orders import PurchaseRequest
from callcontrol.wallet.money import rupees

__all__ = ["routes"]

routes = Routes("numbers.read", "numbers.write", tag="phone numbers")


@routes.get("/v1/dids/available", response=ListingObject, paged=True)
async def search_dids(context: Context[NoBody, ListingSearch]) -> Reply:
    """Search numbers that are for sale."""
    query = context.query
    page = await context.services.market.search(
        ListingFilter(query.region, query.number_type, query.contains), query.page, query.per_page
    )
    return Reply([_listing_json(listing) for listing in page.items], page_meta(page))


@routes.post(
    "/v1/dids/purchase-live",
    response=PurchaseObject,
    success=201,
    errors=(InsufficientBalance, KycRequired, NotFound, NumberTaken, QuoteStale),
    idempotent=True,
)
async def purchase_did(context: Context[PurchaseBody, NoQuery]) -> Reply:
    """
    Buy a number.

    Charges the setup cost and the first months to the wallet. The number is not bound yet.
    """
    body = context.body
    total = body.acknowledged_total
    request = PurchaseRequest(
        live_ref=body.live_ref,
        friendly_name=body.friendly_name,
        months=body.months,
        acknowledged_paise=None if total is None else to_paise(total),
    )
    return Reply(purchase_json(await context.services.market.purchase(context.account_sid, request)))


def _listing_json(listing: Listing) -> dict[str, Any]:
    return shown(
        ListingObject,
        listing,
        monthly_cost=rupees(listing.monthly_cost_paise),
        setup_cost=rupees(listing.setup_cost_paise),
        currency=CURRENCY,
    )
