"""Sessions of the console in a real database, which several servers share."""

from __future__ import annotations

import asyncio

import pytest

from callcontrol.accounts.aio.sessions import MAX_SESSIONS
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import Unauthorized
from callcontrol.models import Account
from tests.support.secrets import SECRETS


async def test_a_session_holds_on_every_server_and_over_restarts(url: str) -> None:
    first = await Storage.open(url, deliver=False, secrets=SECRETS)
    account, key = await first.accounts.create("Acme", kyc=True)
    token = await first.console_sessions.open(key)
    other = await Storage.open(url, deliver=False, secrets=SECRETS)
    try:
        principal = await other.console_sessions.principal(token)
        assert principal.account_sid == account.account_sid
        await first.close()
        await other.console_sessions.close(token)
        with pytest.raises(Unauthorized):
            await other.console_sessions.principal(token)
    finally:
        await other.close()


async def test_of_many_who_use_a_link_at_once_one_is_signed_in(storage: Storage, account: Account) -> None:
    sessions = storage.console_sessions
    (key,) = await storage.keys.list(account.account_sid)
    link = await sessions.make_link(key.key_id)
    found = await asyncio.gather(*(sessions.redeem(link) for _ in range(8)), return_exceptions=True)
    (token,) = [outcome for outcome in found if isinstance(outcome, str)]
    assert sum(isinstance(outcome, Unauthorized) for outcome in found) == 7
    assert (await sessions.principal(token)).key_id == key.key_id


async def test_a_revoked_key_ends_its_sessions_alone(storage: Storage, account: Account) -> None:
    sessions = storage.console_sessions
    keys = [await storage.keys.issue(account.account_sid, "platform") for _ in range(2)]
    ended, kept = [await sessions.open(key) for _, key in keys]
    await storage.keys.revoke(account.account_sid, keys[0][0].key_id)
    with pytest.raises(Unauthorized):
        await sessions.principal(ended)
    assert (await sessions.principal(kept)).key_id == keys[1][0].key_id


async def test_the_oldest_of_too_many_sessions_ends(storage: Storage, account: Account) -> None:
    sessions = storage.console_sessions
    _, key = await storage.keys.issue(account.account_sid, "platform")
    first = await sessions.open(key)
    for _ in range(MAX_SESSIONS):
        last = await sessions.open(key)
    with pytest.raises(Unauthorized):
        await sessions.principal(first)
    assert await sessions.principal(last)


@pytest.mark.parametrize("token", ["", "x", "x" * 43, "\ud800" * 43, "'" * 43])
async def test_what_is_no_token_opens_nothing(storage: Storage, token: str) -> None:
    with pytest.raises(Unauthorized):
        await storage.console_sessions.principal(token)
    with pytest.raises(Unauthorized):
        await storage.console_sessions.redeem(token)
