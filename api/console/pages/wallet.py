"""Wallet: balance, what is reserved, the limit of an hour, and the ledger."""

from __future__ import annotations

from typing import Any, Final, get_args

from aiohttp import web

from api.console.operations import ask, ask_list, refused
from api.console.page import Navigation, Pages
from api.console.visit import HOME, Visit
from callcontrol.errors import DomainError
from callcontrol.models import LedgerKind

__all__ = ["pages"]

PATH: Final = f"{HOME}/wallet"
_SEARCHED: Final = ("kind", "start_date", "end_date")
_TOP_UP: Final = "trunkline wallet top-up --account {account} --amount 500 --reference ORDER-1"

pages = Pages("wallet", scope="calls.read", nav=Navigation("account", 20, PATH))


@pages.get(PATH)
async def show_wallet(visit: Visit) -> web.StreamResponse:
    """
    Show the wallet and its ledger, newest first.

    Money comes by the operator's command alone, so the page shows the command.
    """
    wanted = visit.queries(*_SEARCHED)
    values: dict[str, Any] = {
        "wanted": wanted,
        "wallet": await ask(visit, "get_wallet"),
        "kinds": get_args(LedgerKind),
        "top_up": _TOP_UP.format(account=visit.account_sid),
        "ledger": None,
    }
    try:
        values["ledger"] = await ask_list(visit, "list_ledger", query=wanted)
    except DomainError as refusal:
        return refused(visit, "wallet.html", refusal, **values)
    return visit.show("wallet.html", **values)
