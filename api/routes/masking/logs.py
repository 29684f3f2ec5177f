"""Logs, statistics and billing of number masking (masking specification), and its settings (additive)."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from api.http.endpoint import Context, Reply
from api.http.time_ranges import time_span
from api.routes.masking.calls import masking_routes
from api.routes.webhook_routes import WebhookRoutes
from api.schemas.base import NoBody, NoQuery
from api.schemas.masking.calls import MaskedCallObject
from api.schemas.masking.logs import (
    MaskedCallList,
    MaskingBillingObject,
    MaskingSettingsObject,
    MaskingStatsObject,
    MaskingStatsQuery,
    UpdateMaskingSettings,
)
from api.schemas.serializers import page_meta, shown
from callcontrol.errors import NotFound
from callcontrol.masking.calls import masked_object
from callcontrol.masking.logs import MaskedCallFilter, stats_object
from callcontrol.masking.settings import MaskingSettings
from callcontrol.models import CURRENCY
from callcontrol.wallet.money import rupees

__all__ = ["routes"]

_SETTINGS = "/v1/masking/settings"

routes = masking_routes()


@routes.get("/v1/masking/call-logs", response=MaskedCallObject, paged=True)
async def list_masked_calls(context: Context[NoBody, MaskedCallList]) -> Reply:
    """
    List masked calls, newest first.

    Includes active calls; the total is exact.
    """
    query = context.query
    start, end = time_span(query.start_date, query.end_date)
    wanted = MaskedCallFilter(
        status=query.status,
        direction=query.direction,
        party=query.party,
        session_id=query.session_id,
        start=start,
        end=end,
    )
    page = await context.storage.masking_logs.list(context.account_sid, wanted, query.page, query.per_page)
    return Reply([masked_object(record) for record in page.items], page_meta(page))


@routes.get("/v1/masking/stats", response=MaskingStatsObject)
async def masking_stats(context: Context[NoBody, MaskingStatsQuery]) -> Reply:
    """Usage of masking in a window."""
    query = context.query
    start, end = time_span(query.start_date, query.end_date)
    stats = await context.storage.masking_logs.stats(context.account_sid, start, end)
    return Reply(stats_object(stats, CURRENCY))


@routes.get("/v1/masking/billing", response=MaskingBillingObject)
async def masking_billing(context: Context[NoBody, NoQuery]) -> Reply:
    """Get the balance of the wallet."""
    wallet = await context.storage.wallet.wallet(context.account_sid)
    balance = rupees(wallet.balance_paise)
    return Reply(shown(MaskingBillingObject, wallet, wallet_balance=balance, currency=CURRENCY))


@routes.get(_SETTINGS, response=MaskingSettingsObject)
async def get_masking_settings(context: Context[NoBody, NoQuery]) -> Reply:
    """Get the settings of masked calls."""
    return Reply(_settings_json(await context.storage.masking_settings.of(context.account_sid)))


@routes.patch(_SETTINGS, response=MaskingSettingsObject)
async def update_masking_settings(context: Context[UpdateMaskingSettings, NoQuery]) -> Reply:
    """
    Change the settings of masked calls.

    Omitted fields keep their values. The next call uses the new ones.
    """
    changes = context.body.model_dump(exclude_unset=True)
    return Reply(_settings_json(await context.storage.masking_settings.update(context.account_sid, changes)))


async def _webhook(context: Context[Any, Any]) -> str:
    """Subscription id of the account's masking webhook."""
    settings = await context.storage.masking_settings.of(context.account_sid)
    if settings.subscription_id is None:
        raise NotFound("There is no masking webhook; set webhook_url in the masking settings first.")
    return settings.subscription_id


def _settings_json(settings: MaskingSettings) -> dict[str, Any]:
    return shown(MaskingSettingsObject, settings, has_webhook_secret=settings.webhook_secret is not None)


WebhookRoutes(
    routes,
    service=attrgetter("masking_webhooks"),
    one=_SETTINGS + "/webhook",
    find=_webhook,
    webhook="the masking webhook",
    events="the events of masked calls",
    operation="masking_webhook",
    delivery="masking_",
    errors=(NotFound,),
).add_deliveries()
