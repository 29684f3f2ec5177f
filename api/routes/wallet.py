"""Wallet and ledger (additive: the specification has prices, but no endpoint for the balance)."""

from __future__ import annotations

from typing import Any

from api.http.cursor import read_cursor
from api.http.endpoint import Context, Endpoint, Reply
from api.http.time_ranges import time_span
from api.schemas.base import NoBody, NoQuery
from api.schemas.serializers import keyset_meta, ledger_json, wallet_json
from api.schemas.wallet import LedgerEntryObject, LedgerList, WalletObject
from callcontrol.aio.tokens import utc_now
from callcontrol.models import LedgerFilter

__all__ = ["ENDPOINTS"]

_NUMBER = "[0-9]{1,18}"


async def get_wallet(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /wallet."""
    wallets = context.storage.wallet
    wallet = await wallets.wallet(context.account_sid)
    limit_paise = await wallets.spend_limit(context.account_sid)
    return Reply(wallet_json(wallet, limit_paise, utc_now()))


async def list_ledger(context: Context[NoBody, LedgerList]) -> Reply:
    """Answer GET /wallet/ledger."""
    query = context.query
    place = read_cursor(query.cursor, _NUMBER)
    start, end = time_span(query.start_date, query.end_date)
    page = await context.storage.wallet.ledger(
        context.account_sid, query.page, query.per_page, LedgerFilter(query.kind, start, end), after=place
    )
    return Reply([ledger_json(entry) for entry in page.items], keyset_meta(page, by_cursor=bool(place)))


# A key that may read the cost of calls may read the wallet: the list of scopes is closed.
_WALLET: dict[str, Any] = {"method": "GET", "scope": "calls.read", "tag": "wallet"}

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        path="/v1/wallet",
        handler=get_wallet,
        summary="Get balance, reserved and available money",
        response=WalletObject,
        **_WALLET,
    ),
    Endpoint(
        path="/v1/wallet/ledger",
        handler=list_ledger,
        summary="List changes of the balance, newest first",
        description="By page or by cursor. The amounts of all entries add up to the balance.",
        query=LedgerList,
        response=LedgerEntryObject,
        paged=True,
        keyset=True,
        **_WALLET,
    ),
)
