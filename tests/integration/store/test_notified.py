"""Changes that one server makes on PostgreSQL, and others hear of; nobody polls unless a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import sqlalchemy as sa

from callcontrol.accounts import store as accounts
from callcontrol.accounts.aio import keys as keys_module
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.aio.postgres import Listening, Postgres
from callcontrol.directory.aio import loader
from callcontrol.errors import ServiceUnavailable, Unauthorized
from tests.support.postgres import PostgresServer
from tests.support.secrets import SECRETS
from tests.support.waiting import until

pytestmark = pytest.mark.real_time(reason="PostgreSQL")

_NEVER_S = 1e6
_END_LISTENERS = sa.text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
    " AND datname = current_database()"
)


@pytest.fixture
async def shared(postgres: PostgresServer) -> AsyncIterator[str]:
    made = await postgres.url()
    yield made
    await postgres.drop(made)


@pytest.fixture
def without_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "POLL_S", _NEVER_S)
    monkeypatch.setattr(keys_module, "CACHE_S", _NEVER_S)


@asynccontextmanager
async def two(url: str) -> AsyncIterator[tuple[Storage, Storage]]:
    one, other = [await Storage.open(url, StorageSettings(node=name), secrets=SECRETS) for name in ("a", "b")]
    yield one, other
    await asyncio.gather(one.close(), other.close())


@pytest.fixture
async def nodes(shared: str, without_polls: None) -> AsyncIterator[tuple[Storage, Storage]]:
    async with two(shared) as opened:
        await until(lambda: all_listen(opened))
        yield opened


def all_listen(nodes: tuple[Storage, Storage]) -> bool:
    return all(node.listener.connected for node in nodes)


async def refused(node: Storage, key: str) -> bool:
    try:
        await node.keys.authenticate(key)
    except Unauthorized:
        return True
    return False


async def test_a_change_of_the_directory_is_followed(nodes: tuple[Storage, Storage]) -> None:
    a, b = nodes
    account, _ = await a.accounts.create("Acme")
    await until(lambda: b.directory.account(account.account_sid) is not None)
    await b.accounts.update(account.account_sid, {"max_calls": 7})

    def is_followed() -> bool:
        found = a.directory.account(account.account_sid)
        return found is not None and found.max_calls == 7

    await until(is_followed)
    assert b.listener.notifications["directory"] > 0


async def test_a_command_beside_the_servers_is_heard(shared: str, nodes: tuple[Storage, Storage]) -> None:
    command = await Storage.open(shared, deliver=False, secrets=SECRETS)
    account, _ = await command.accounts.create("Acme")
    await command.close()
    await until(lambda: all(node.directory.account(account.account_sid) for node in nodes))


async def test_a_revoked_key_opens_nothing_elsewhere(nodes: tuple[Storage, Storage]) -> None:
    a, b = nodes
    account, key = await a.accounts.create("Acme")
    principal = await b.keys.authenticate(key)
    await a.keys.revoke(account.account_sid, principal.key_id)
    await until(lambda: refused(b, key))
    assert b.listener.notifications["key"] > 0


async def test_a_rotated_key_ends_elsewhere(nodes: tuple[Storage, Storage]) -> None:
    a, b = nodes
    account, key = await a.accounts.create("Acme")
    principal = await b.keys.authenticate(key)
    _, successor, _ = await a.keys.rotate(account.account_sid, principal.key_id, 0)
    await until(lambda: refused(b, key))
    assert (await b.keys.authenticate(successor)).account_sid == account.account_sid


async def test_a_key_that_was_unknown_is_accepted_once_it_is_made(nodes: tuple[Storage, Storage]) -> None:
    a, b = nodes
    account, _ = await a.accounts.create("Acme")
    record, key, key_hash = a.keys.make(account.account_sid, "platform", None)
    assert await refused(b, key)
    await a.writer.commit(lambda connection: accounts.insert_key(connection, record, key_hash))

    async def accepted() -> bool:
        return not await refused(b, key)

    await until(accepted)


async def test_what_is_missed_while_a_connection_is_lost_is_looked_up(nodes: tuple[Storage, Storage]) -> None:
    a, b = nodes
    account, key = await a.accounts.create("Acme")
    principal = await b.keys.authenticate(key)
    ended = await a.database.read(lambda connection: connection.scalar(_END_LISTENERS))
    assert ended == 2
    await a.keys.revoke(account.account_sid, principal.key_id)
    changed, _ = await a.accounts.create("Other")
    await until(lambda: b.directory.account(changed.account_sid) is not None)
    await until(lambda: refused(b, key))
    await until(lambda: all_listen(nodes))


async def test_a_known_key_opens_while_the_database_is_away(
    nodes: tuple[Storage, Storage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost connection has it looked up again, and that needs no answer."""
    a, b = nodes
    account, key = await a.accounts.create("Acme")
    await b.keys.authenticate(key)

    async def away(*_: object) -> None:
        raise ServiceUnavailable("The database does not answer; try again shortly.")

    monkeypatch.setattr(b.database, "look_up", away)
    b.keys.expire()
    assert (await b.keys.authenticate(key)).account_sid == account.account_sid


async def test_changes_are_polled_when_nothing_is_heard(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def deaf(_: Postgres, channel: str, heard: Callable[[str], None]) -> AsyncIterator[Listening]:
        raise OSError("cut")
        yield

    monkeypatch.setattr(Postgres, "listening", deaf)
    async with two(shared) as (a, b):
        account, key = await a.accounts.create("Acme")
        principal = await b.keys.authenticate(key)
        await until(lambda: b.directory.account(account.account_sid) is not None)
        await a.keys.revoke(account.account_sid, principal.key_id)
        await until(lambda: refused(b, key))
        assert not b.listener.connected and not b.listener.notifications.total()
