"""Wallet and ledger (additive: the specification has prices, but no endpoint for the balance)."""

from __future__ import annotations

from api.http.endpoint import Context, Reply, Routes
from api.http.time_ranges import time_span
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import keyset_meta
from api.schemas.wallet import LedgerEntryObject, LedgerList, WalletObject, ledger_json, wallet_json
from callcontrol.aio.tokens import utc_now
from callcontrol.models import LedgerFilter

__all__ = ["routes"]

routes = Routes("calls.read", tag="wallet")


@routes.get("/v1/wallet", response=WalletObject)
async def get_wallet(context: Context[NoBody, NoQuery]) -> Reply:
    """Get balance, reserved and available money."""
    wallets = context.storage.wallet
    wallet = await wallets.wallet(context.account_sid)
    limit_paise = await wallets.spend_limit(context.account_sid)
    return Reply(wallet_json(wallet, limit_paise, utc_now()))


@routes.get("/v1/wallet/ledger", response=LedgerEntryObject, paged=True, keyset=True)
async def list_ledger(context: Context[NoBody, LedgerList]) -> Reply:
    """
    List changes of the balance, newest first.

    By page or by cursor. The amounts of all entries add up to the balance.
    """
    query = context.query
    place = query.place(query.cursor)
    start, end = time_span(query.start_date, query.end_date)
    page = await context.storage.wallet.ledger(
        context.account_sid, query.page, query.per_page, LedgerFilter(query.kind, start, end), after=place
    )
    meta = keyset_meta(page, query.listed[0], by_cursor=bool(place))
    return Reply([ledger_json(entry) for entry in page.items], meta)
