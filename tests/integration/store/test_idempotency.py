from __future__ import annotations

import asyncio
import dataclasses
import json
from datetime import timedelta

import pytest
from sqlalchemy.engine import Connection

from api.process.idempotency_recovery import answer_interrupted
from callcontrol.aio.tokens import new_id
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database import idempotency as keys
from callcontrol.database.aio import idempotency
from callcontrol.database.aio.writer import WriterSettings
from callcontrol.errors import IdempotencyConflict, ServiceUnavailable
from callcontrol.masking.calls import PRODUCT as MASKING
from callcontrol.masking.calls import masked_details
from callcontrol.models import Account, StoredReply
from tests.support.domain import new_record
from tests.support.secrets import SECRETS

ENDPOINT = "POST /v1/calls"


async def test_of_many_repeats_one_runs(storage: Storage, url: str, account: Account) -> None:
    other = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)

    stores = (storage.idempotency, other.idempotency)

    async def begin(position: int) -> str:
        try:
            reply = await stores[position % 2].begin(account.account_sid, "key", ENDPOINT, "hash")
        except IdempotencyConflict:
            return "running"
        return "mine" if reply is None else "replayed"

    results = await asyncio.gather(*(begin(position) for position in range(60)))
    assert results.count("mine") == 1
    assert results.count("running") == 59
    # Either process may have been first, and until that one has its answer it knows that it is at work.
    await stores[results.index("mine") % 2].complete(account.account_sid, "key", 201, b'{"data":{}}')
    for store in stores:
        replayed = await store.begin(account.account_sid, "key", ENDPOINT, "hash")
        assert replayed == StoredReply(201, b'{"data":{}}')
    await other.close()


async def test_a_key_stands_for_one_request(storage: Storage, account: Account, stranger: Account) -> None:
    store, sid = storage.idempotency, account.account_sid
    assert await store.begin(sid, "key", ENDPOINT, "hash") is None
    await store.complete(sid, "key", 201, b"x")
    for endpoint, body_hash in ((ENDPOINT, "other"), ("POST /v1/other", "hash")):
        with pytest.raises(IdempotencyConflict):
            await store.begin(sid, "key", endpoint, body_hash)
    assert await store.begin(stranger.account_sid, "key", ENDPOINT, "other") is None


async def test_a_released_key_may_be_used_again(storage: Storage, account: Account) -> None:
    store, sid = storage.idempotency, account.account_sid
    assert await store.begin(sid, "key", ENDPOINT, "hash") is None
    await store.release(sid, "key")
    assert await store.begin(sid, "key", ENDPOINT, "other") is None


async def test_an_answer_is_kept_however_much_waits_for_the_database(
    storage: Storage, account: Account
) -> None:
    store, sid = storage.idempotency, account.account_sid
    assert await store.begin(sid, "key", ENDPOINT, "hash") is None
    storage.writer._settings = dataclasses.replace(storage.writer._settings, max_waiting=0)
    with pytest.raises(ServiceUnavailable):
        await store.begin(sid, "another", ENDPOINT, "hash")
    await store.complete(sid, "key", 201, b"x")
    storage.writer._settings = WriterSettings()
    assert await store.begin(sid, "key", ENDPOINT, "hash") == StoredReply(201, b"x")
    assert await store.begin(sid, "another", ENDPOINT, "hash") is None


async def test_repeats_of_what_runs_here_do_not_trouble_the_database(
    storage: Storage, account: Account
) -> None:
    store, sid = storage.idempotency, account.account_sid
    assert await store.begin(sid, "key", ENDPOINT, "hash") is None
    before = storage.writer.stats.operations
    for body_hash, told in (("hash", "still running"), ("other", "used for another")):
        with pytest.raises(IdempotencyConflict, match=told):
            await store.begin(sid, "key", ENDPOINT, body_hash)
    assert storage.writer.stats.operations == before


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


async def test_what_a_killed_process_left_running_is_free_unless_it_had_an_effect(
    url: str, account: Account, storage: Storage
) -> None:
    store, sid = storage.idempotency, account.account_sid
    for key in ("idle", "calls", "done"):
        assert await store.begin(sid, key, ENDPOINT, "hash") is None
        if key != "idle":
            call = new_record(sid)
            await storage.calls.insert(call, reserve_paise=100)
        if key == "done":
            await store.complete(sid, key, 201, b"x")
    other = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    assert (await other.idempotency.free(), await other.idempotency.interrupted()) == (0, [])
    await other.close()

    restarted = await Storage.open(url, secrets=SECRETS)
    (left,) = await restarted.idempotency.interrupted()
    assert (left.account_sid, left.key) == (sid, "calls")
    kind, _, call_sid = left.effect.partition(":")
    assert kind == "call" and (await restarted.calls.get(sid, call_sid)).call_sid == call_sid
    assert await restarted.idempotency.begin(sid, "idle", ENDPOINT, "other body") is None
    assert await restarted.idempotency.begin(sid, "done", ENDPOINT, "hash") == StoredReply(201, b"x")
    with pytest.raises(IdempotencyConflict):
        await restarted.idempotency.begin(sid, "calls", ENDPOINT, "hash")

    await answer_interrupted(restarted)
    reply = await restarted.idempotency.begin(sid, "calls", ENDPOINT, "hash")
    assert reply is not None and reply.status == 201
    assert json.loads(reply.body)["data"]["call_sid"] == call_sid
    await restarted.close()


async def test_a_repetition_while_the_key_of_a_dead_node_is_answered(
    storage: Storage, url: str, account: Account
) -> None:
    """A node that adopts another answers for it, beside repetitions that come to itself."""
    dead = await Storage.open(url, StorageSettings(node="dead"), deliver=False, secrets=SECRETS)
    store, sid = storage.idempotency, account.account_sid
    assert await dead.idempotency.begin(sid, "key", ENDPOINT, "hash") is None
    repeated = store.begin(sid, "key", ENDPOINT, "hash")
    _, reply = await asyncio.gather(store.complete(sid, "key", 201, b"x"), repeated)
    assert reply == StoredReply(201, b"x")
    await dead.close()


async def test_a_masked_call_is_answered_as_it_would_have_been(storage: Storage, account: Account) -> None:
    store, sid = storage.idempotency, account.account_sid
    assert await store.begin(sid, "masked", "POST /v1/masking/calls", "hash") is None
    details = masked_details(
        direction="click_to_call",
        caller_number="+919812345678",
        target_number="+919876543210",
        masked_number="+918047491899",
    )
    record = new_record(sid, to="+919812345678", product=MASKING, details=details)
    await storage.calls.insert(record)
    await answer_interrupted(storage)
    reply = await store.begin(sid, "masked", "POST /v1/masking/calls", "hash")
    assert reply is not None and reply.status == 201
    assert json.loads(reply.body)["data"] == {
        "call_sid": record.call_sid,
        "status": "initiated",
        "party_a": "9812345678",
        "party_b": "9876543210",
        "masked_number": "+918047491899",
    }


async def test_a_request_does_not_mark_the_claim_of_the_one_before(
    storage: Storage, account: Account
) -> None:
    """Requests of one connection run in one task."""
    store, sid = storage.idempotency, account.account_sid
    assert await store.begin(sid, "released", ENDPOINT, "hash") is None
    await store.release(sid, "released")
    assert await store.begin(sid, "again", ENDPOINT, "hash") is None
    await store.complete(sid, "again", 201, b"x")
    await storage.calls.insert(new_record(sid))
    assert await store.interrupted() == []
    assert await store.free() == 0


async def test_a_call_that_was_taken_back_leaves_its_key_free(storage: Storage, account: Account) -> None:
    store, sid = storage.idempotency, account.account_sid
    assert await store.begin(sid, "key", ENDPOINT, "hash") is None

    def note(connection: Connection) -> None:
        keys.note_effect(connection, (sid, "key"), f"call:{new_id()}")

    await storage.writer.commit(note)
    await answer_interrupted(storage)
    assert await store.begin(sid, "key", ENDPOINT, "other") is None
