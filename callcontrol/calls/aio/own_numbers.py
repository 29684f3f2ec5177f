"""Calls to an account's own numbers that are placed by API: the called number must be the account's."""

from collections.abc import Awaitable, Callable

from callcontrol.directory.directory import Directory
from callcontrol.errors import NumberNotOwned
from callcontrol.models import Account


async def owner_of(
    routes: Directory, refresh: Callable[[], Awaitable[None]], account_sid: str, number: str
) -> Account:
    """
    Return the account, to which the number in E.164 must belong; ``refresh`` updates the directory.

    Raises:
        NumberNotOwned: It is no active number of the account.
    """
    found = routes.number(number)
    if found is None or found.account_sid != account_sid:
        # Another process may have just assigned it.
        await refresh()
        found = routes.number(number)
    account = routes.account(account_sid)
    if found is None or found.account_sid != account_sid or account is None:
        raise NumberNotOwned(f"{number} is not a number of the account; call one that is.")
    if found.status != "active":
        raise NumberNotOwned(f"{number} is suspended because its renewal is not paid; top up first.")
    return account
