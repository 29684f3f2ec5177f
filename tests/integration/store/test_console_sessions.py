"""Sessions of the console in a real database, which several servers share."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import sqlalchemy as sa

from callcontrol.accounts.aio.sessions import ACTIONS_KEPT, MAX_SESSIONS
from callcontrol.accounts.store import OperatorSession
from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.statements import to_micros
from callcontrol.database.tables.accounts import operator_actions, operator_sessions
from callcontrol.errors import NotFound, Unauthorized, ValidationFailed
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


# Operators


async def test_of_many_who_use_an_operator_s_link_at_once_one_is_signed_in(
    storage: Storage, account: Account
) -> None:
    operators = storage.operators
    link = await operators.make_link("asha")
    found = await asyncio.gather(*(operators.redeem(link) for _ in range(8)), return_exceptions=True)
    (token,) = [outcome for outcome in found if isinstance(outcome, str)]
    assert sum(isinstance(outcome, Unauthorized) for outcome in found) == 7
    assert await operators.find(token) == OperatorSession("asha", None)
    await operators.choose(token, account.account_sid)
    assert await operators.find(token) == OperatorSession("asha", account.account_sid)
    with pytest.raises(NotFound):
        await operators.choose(token, "no such account")
    await operators.choose(token, None)
    assert (await operators.find(token)).account_sid is None


async def test_a_link_is_no_session_and_a_session_no_link(storage: Storage) -> None:
    operators = storage.operators
    link = await operators.make_link("asha")
    with pytest.raises(Unauthorized):
        await operators.find(link)
    token = await operators.redeem(link)
    for used in (link, token, "", "operator_", "operator_" + "x" * 43, "\ud800" * 52):
        with pytest.raises(Unauthorized):
            await operators.redeem(used)
    with pytest.raises(Unauthorized):
        await storage.console_sessions.principal(token)


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "<b>", "\0", "ä"])
async def test_a_name_of_an_operator_is_plain(storage: Storage, name: str) -> None:
    with pytest.raises(ValidationFailed):
        await storage.operators.make_link(name)


async def test_what_operators_did_is_kept_newest_first(storage: Storage, account: Account) -> None:
    operators = storage.operators
    for number in range(3):
        await operators.note("asha", account.account_sid, f"/console/{number}" + "x" * 1000)
    newest = await operators.actions(2)
    assert [(action.operator, action.path[:10], len(action.path)) for action in newest] == [
        ("asha", "/console/2", 300),
        ("asha", "/console/1", 300),
    ]
    late = utc_now() - ACTIONS_KEPT - timedelta(seconds=1)
    of_old = sa.update(operator_actions).values(created_at=to_micros(late))
    await storage.writer.commit(
        lambda connection: connection.execute(of_old.where(operator_actions.c.position < 3))
    )
    assert await operators.sweep() == 2
    assert [action.path[:10] for action in await operators.actions(5)] == ["/console/2"]


async def test_expired_sessions_of_operators_end_and_are_deleted(storage: Storage) -> None:
    operators = storage.operators
    kept = await operators.redeem(await operators.make_link("asha"))
    ended = await operators.redeem(await operators.make_link("ravi"))
    await operators.make_link("ravi")
    past = sa.update(operator_sessions).where(operator_sessions.c.operator == "ravi").values(expires_at=1)
    await storage.writer.commit(lambda connection: connection.execute(past))
    with pytest.raises(Unauthorized):
        await operators.find(ended)
    assert await operators.sweep() == 2
    assert (await operators.find(kept)).operator == "asha"
    assert await operators.end("asha") == 1 and await operators.end("asha") == 0
