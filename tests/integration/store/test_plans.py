"""Plans of PostgreSQL for the statements of every call: one that is kept must do for a table that grows."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import partial

import pytest
from sqlalchemy.engine import Connection

from callcontrol.bootstrap.aio.services import Storage
from tests.integration.store.test_call_work import live
from tests.support.call_work import CallWork
from tests.support.domain import new_record
from tests.support.postgres import PostgresServer


@pytest.fixture
async def url(postgres: PostgresServer) -> AsyncIterator[str]:
    made = await postgres.url()
    yield made
    await postgres.drop(made)


class Texts(CallWork):
    """Keeps the texts of statements over rows."""

    over_rows: set[str]

    def _executed(self, text: str) -> None:
        super()._executed(text)
        if text.startswith("WITH given"):
            self.over_rows.add(text)


def plan_for_any_values(connection: Connection, text: str) -> str:
    connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan")
    connection.exec_driver_sql(f"PREPARE kept AS {text}")
    values = ", ".join(["NULL"] * max(int(number) for number in re.findall(r"\$(\d+)", text)))
    plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN EXECUTE kept ({values})").scalars())
    connection.exec_driver_sql("DEALLOCATE kept")
    return plan


async def test_rows_are_found_by_their_keys_though_the_table_was_empty(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [(await storage.accounts.create(f"A{n}", balance_paise=900))[0].account_sid for n in range(2)]
    work = Texts(storage, monkeypatch)
    work.over_rows = set()
    for limited in (False, True):
        await live(storage, [new_record(sid) for sid in made], limited=limited)
    # Inserts with limits and without, settlements, and updates of active calls and of those that end.
    assert len(work.over_rows) == 5
    for text in work.over_rows:
        plan = await storage.database.read(partial(plan_for_any_values, text=text))
        assert ("Index Scan using pk_calls" in plan) == ("UPDATE calls" in text)
        assert not any(f"Seq Scan on {table}" in plan for table in ("calls", "reserves", "wallets"))
