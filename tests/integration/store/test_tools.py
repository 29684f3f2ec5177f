"""Tools and their usage in either database."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.tables.tools import tools as table
from callcontrol.errors import Conflict, NotFound, ValidationFailed
from callcontrol.models import Account, Principal
from callcontrol.tools.aio import registry as registries
from callcontrol.tools.aio.service import Toolbox
from callcontrol.tools.store import usage as tool_usage
from callcontrol.tools.usage import Usage, UsageFilter, UsageKey
from tests.support.secrets import SECRETS
from tests.support.waiting import until

URL = "https://93.184.215.14/tools/find"
VALUES = {
    "name": "find_order",
    "description": "Finds an order.",
    "url": URL,
    "headers": {"X-Key": "k3y-s3cret"},
}
ALWAYS = UsageFilter("0000-00-00", "9999-99-99")


async def _builtin(_: str, arguments: Any) -> dict[str, Any]:
    return {"balance": 1}


def toolbox(storage: Storage) -> Toolbox:
    return Toolbox(
        storage.database,
        storage.writer,
        storage.destinations,
        storage.keys,
        {"wallet_balance": _builtin},
    )


async def test_a_tool_is_registered_changed_disabled_and_deleted(storage: Storage, account: Account) -> None:
    registry, sid = toolbox(storage).registry, account.account_sid
    made = await registry.register(sid, VALUES)
    assert made.secret.startswith("whsec_")
    found = await registry.get(sid, "find_order")
    assert found.http == made and found.tool.is_enabled
    changed = await registry.update(sid, "find_order", {"timeout_s": 3, "headers": {}})
    assert changed.http is not None and (changed.http.timeout_s, dict(changed.http.headers)) == (3, {})
    assert changed.http.secret == made.secret, "what is left out is not changed"
    for _ in range(2):
        assert not (await registry.set_enabled(sid, "find_order", enabled=False)).tool.is_enabled
    assert not (await registry.set_enabled(sid, "wallet_balance", enabled=False)).tool.is_enabled
    assert [item.tool.name for item in await registry.list(sid)] == ["find_order", "wallet_balance"]
    await registry.delete(sid, "find_order")
    with pytest.raises(NotFound):
        await registry.get(sid, "find_order")
    await registry.register(sid, VALUES)
    assert (await registry.get(sid, "find_order")).tool.is_enabled, "a new one is not what the old one was"


async def test_secrets_are_sealed_in_the_database(storage: Storage, account: Account) -> None:
    made = await toolbox(storage).registry.register(account.account_sid, VALUES)
    row = await storage.database.read(lambda connection: connection.execute(sa.select(table)).one())
    stored = " ".join(map(str, row))
    assert made.secret not in stored and "k3y-s3cret" not in stored


async def test_names_are_unique_on_an_account_and_tools_bounded(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, sid = toolbox(storage).registry, account.account_sid
    outcomes = await asyncio.gather(
        *(registry.register(sid, VALUES) for _ in range(5)), return_exceptions=True
    )
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 4, outcomes
    other, _ = await storage.accounts.create("Other")
    await registry.register(other.account_sid, VALUES)
    monkeypatch.setattr(registries, "MAX_TOOLS", 1)
    with pytest.raises(Conflict):
        await registry.register(sid, {**VALUES, "name": "another"})


async def test_built_in_tools_are_neither_changed_nor_deleted(storage: Storage, account: Account) -> None:
    registry, sid = toolbox(storage).registry, account.account_sid
    with pytest.raises(Conflict):
        await registry.update(sid, "wallet_balance", {"timeout_s": 3})
    with pytest.raises(Conflict):
        await registry.delete(sid, "wallet_balance")
    for refused in (registry.get(sid, "none"), registry.set_enabled(sid, "none", enabled=True)):
        with pytest.raises(NotFound):
            await refused


async def test_addresses_of_our_own_are_refused_when_a_tool_is_registered(
    storage: Storage, account: Account
) -> None:
    registry = toolbox(storage).registry
    for url in ("http://93.184.215.14/", "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1/x"):
        with pytest.raises(ValidationFailed) as caught:
            await registry.register(account.account_sid, {**VALUES, "url": url})
        assert [error.field for error in caught.value.errors] == ["url"]


async def test_usage_adds_up_whoever_counts_it(url: str, storage: Storage, account: Account) -> None:
    principal = Principal(account.account_sid, "key-1", "tools", frozenset({"tools"}))
    second = await Storage.open(url, StorageSettings(node="b"), deliver=False, secrets=SECRETS)
    boxes = [toolbox(storage), toolbox(second)]
    try:
        for box in boxes:
            await asyncio.gather(*(box.service.execute(principal, "wallet_balance", {}) for _ in range(3)))
            await box.usage.of_account(account.account_sid, ALWAYS)
        rows, truncated = await boxes[0].usage.of_account(account.account_sid, ALWAYS)
    finally:
        for box in boxes:
            await box.close()
        await second.close()
    assert not truncated
    assert [(key.tool, key.key_id, usage.calls, usage.errors) for key, usage in rows] == [
        ("wallet_balance", "key-1", 6, 0)
    ]


async def test_old_usage_is_forgotten(storage: Storage, account: Account) -> None:
    sid, usage = account.account_sid, toolbox(storage).usage
    counted = {
        UsageKey(sid, day, tool, "key-1"): Usage(1, 0, 5, 5)
        for day in ("2020-01-01", "2020-01-02", "9000-01-01")
        for tool in ("a", "b")
    }
    await storage.writer.commit(lambda connection: tool_usage.add(connection, counted))
    await storage.writer.commit(lambda connection: tool_usage.add(connection, counted))
    rows, _ = await usage.of_account(sid, UsageFilter("2020-01-02", "2020-12-31", tool="a"))
    assert [(key.day, row) for key, row in rows] == [("2020-01-02", Usage(2, 0, 10, 5))]
    assert await usage.forget() == 4
    rows, _ = await usage.of_account(sid, ALWAYS)
    assert [key.day for key, _ in rows] == ["9000-01-01"] * 2


async def test_changes_are_told_of_in_every_process(url: str, storage: Storage, account: Account) -> None:
    second = await Storage.open(url, StorageSettings(node="b"), deliver=False, secrets=SECRETS)
    here, there = toolbox(storage), toolbox(second)
    told: dict[str, list[str]] = {"here": [], "there": []}
    ends = [
        here.service.on_change(told["here"].append),
        there.service.on_change(told["there"].append),
    ]
    try:
        await here.registry.register(account.account_sid, VALUES)

        async def both_hear() -> bool:
            # Changes are told of once a process has read the latest one at its start.
            await here.registry.set_enabled(account.account_sid, "find_order", enabled=True)
            return bool(told["here"] and told["there"])

        await until(both_hear)
        ends[0]()
        heard = {name: len(sids) for name, sids in told.items()}
        await there.registry.delete(account.account_sid, "find_order")
        await until(lambda: len(told["there"]) > heard["there"])
        assert len(told["here"]) == heard["here"], "who has ended it is told nothing more"
        assert {*told["here"], *told["there"]} == {account.account_sid}
    finally:
        await here.close()
        await there.close()
        await second.close()
