from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from callcontrol.aio import idempotency
from callcontrol.aio.storage import Storage
from callcontrol.errors import IdempotencyConflict
from callcontrol.models import Account, StoredReply
from tests.support.secrets import SECRETS

ENDPOINT = "POST /v1/calls"


async def test_of_many_repeats_one_runs(storage: Storage, url: str, account: Account) -> None:
    other = await Storage.open(url, node="other", deliver=False, secrets=SECRETS)

    async def begin(position: int) -> str:
        store = (storage, other)[position % 2].idempotency
        try:
            reply = await store.begin(account.account_sid, "key", ENDPOINT, "hash")
        except IdempotencyConflict:
            return "running"
        return "mine" if reply is None else "replayed"

    results = await asyncio.gather(*(begin(position) for position in range(60)))
    assert results.count("mine") == 1
    assert results.count("running") == 59
    await storage.idempotency.complete(account.account_sid, "key", 201, b'{"data":{}}')
    assert await other.idempotency.begin(account.account_sid, "key", ENDPOINT, "hash") == StoredReply(
        201, b'{"data":{}}'
    )
    await other.close()


async def test_a_key_stands_for_one_request(storage: Storage, account: Account) -> None:
    store, sid = storage.idempotency, account.account_sid
    assert await store.begin(sid, "key", ENDPOINT, "hash") is None
    await store.complete(sid, "key", 201, b"x")
    for endpoint, body_hash in ((ENDPOINT, "other"), ("POST /v1/other", "hash")):
        with pytest.raises(IdempotencyConflict):
            await store.begin(sid, "key", endpoint, body_hash)
    stranger, _ = await storage.accounts.create("Other")
    assert await store.begin(stranger.account_sid, "key", ENDPOINT, "other") is None


async def test_a_released_key_may_be_used_again(storage: Storage, account: Account) -> None:
    store, sid = storage.idempotency, account.account_sid
    assert await store.begin(sid, "key", ENDPOINT, "hash") is None
    await store.release(sid, "key")
    assert await store.begin(sid, "key", ENDPOINT, "other") is None


async def test_old_keys_count_as_absent_and_are_purged(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, sid = storage.idempotency, account.account_sid
    for key in ("a", "b"):
        assert await store.begin(sid, key, ENDPOINT, "hash") is None
        await store.complete(sid, key, 201, b"x")
    monkeypatch.setattr(idempotency, "KEPT", timedelta(seconds=-60))
    assert await store.begin(sid, "a", ENDPOINT, "other") is None
    assert await store.purge() == 2
    assert await store.purge() == 0
