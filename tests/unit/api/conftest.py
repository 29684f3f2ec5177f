from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy.engine import Connection

from api.http.app import REQUESTS_PER_MINUTE, create_app
from api.process.metrics import Metrics
from callcontrol.accounts import store as accounts
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.revisions import next_revision
from tests.support.domain import make_account
from tests.support.secrets import SECRETS
from tests.support.sqlite import sqlite_url
from tests.unit.api.client import Client, client_for
from tests.unit.api.fakes import ACCOUNT, OTHER_ACCOUNT, Fakes


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[Storage]:
    """The real services on a database, which has the accounts of the tests."""
    opened = await Storage.open(
        await sqlite_url(tmp_path / "api.db"),
        StorageSettings(allow_private_destinations=True),
        deliver=False,
        secrets=SECRETS,
    )

    def add_accounts(connection: Connection) -> None:
        for account_sid in (ACCOUNT, OTHER_ACCOUNT):
            accounts.insert(connection, make_account(account_sid), next_revision(connection))

    await opened.writer.commit(add_accounts)
    await opened.refresh()
    yield opened
    await opened.close()


@pytest.fixture
async def client(fakes: Fakes) -> AsyncIterator[Client]:
    app = create_app(
        fakes.services(),
        mcp=cast(Any, fakes.mcp),
        lifecycle=fakes.lifecycle,
        metrics=Metrics(),
        public_url="http://127.0.0.1:8080",
        trusted_sources=(ip_network("10.0.0.0/8"),),
        requests_per_minute={**REQUESTS_PER_MINUTE, "platform": 20},
        check_replies=True,
    )
    async with client_for(app) as client:
        yield client
