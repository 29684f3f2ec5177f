"""Accounts of the server, for operators: the choice of the one in which they look and act."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from api.console.page import Navigation, Pages
from api.console.visit import HOME, UUID, Visit

__all__ = ["pages"]

PATH: Final = f"{HOME}/accounts"
MOST_SHOWN: Final = 100
"""Accounts that the page shows; a search finds others."""

pages = Pages("accounts", nav=Navigation("account", 5, PATH), every_account=True, only="operators")


@pages.get(PATH)
async def list_accounts(visit: Visit) -> web.StreamResponse:
    """Show accounts, newest first, or those whose name or identifier contains a text."""
    text = visit.query("text").casefold()
    found = [
        account
        for account in reversed(await visit.storage.accounts.list())
        if text in account.name.casefold() or text in account.account_sid
    ]
    return visit.show("accounts.html", accounts=found[:MOST_SHOWN], more=max(0, len(found) - MOST_SHOWN))


@pages.post(f"{PATH}/choose", of_session=True)
async def choose_account(visit: Visit) -> web.StreamResponse:
    """Enter an account, and go back to the call from which it was chosen, if any; without one, leave it."""
    account_sid = visit.form.get("account", "")
    await visit.storage.operators.choose(visit.token, account_sid or None)
    visit.console.feed.judge(visit.token)
    call_sid = visit.form.get("call", "")
    if account_sid and UUID.fullmatch(call_sid):
        visit.go(f"{HOME}/calls/{call_sid}")
    visit.go(f"{HOME}/live" if account_sid else PATH, done=None if account_sid else "left")
