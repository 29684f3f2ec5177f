"""Every test that takes ``url`` runs on SQLite, and on PostgreSQL where there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.models import Account
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.secrets import SECRETS
from tests.support.sqlite import sqlite_url


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    if request.param == "sqlite":
        yield await sqlite_url(tmp_path / "data" / "trunkline.db")
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    made = await server.url()
    yield made
    await server.drop(made)


@pytest.fixture(params=["sqlite", "postgres"])
async def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    if request.param == "sqlite":
        yield f"sqlite+aiosqlite:///{tmp_path / 'data' / 'trunkline.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    made = await server.empty_url()
    yield made
    await server.drop(made)


@pytest.fixture
async def storage(url: str) -> AsyncIterator[Storage]:
    opened = await Storage.open(url, deliver=False, secrets=SECRETS)
    yield opened
    await opened.close()


@pytest.fixture
async def account(storage: Storage) -> Account:
    """An account with 1000 rupees."""
    created, _ = await storage.accounts.create("Acme", balance_paise=100_000, kyc=True)
    return created


@pytest.fixture
async def stranger(storage: Storage) -> Account:
    """Another account, without money."""
    created, _ = await storage.accounts.create("Stranger")
    return created
