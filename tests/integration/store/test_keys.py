"""Keys that keys manage, webhook secrets and sealed responses in a real database."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.accounts.aio import keys as keys_module
from callcontrol.accounts.aio import managed_keys
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.tables.accounts import accounts
from callcontrol.database.tables.system import idempotency_keys
from callcontrol.errors import Conflict, Forbidden, IdempotencyConflict, NotFound, Unauthorized
from callcontrol.models import Account, Principal, StoredReply
from callcontrol.secrets.aio import SecretBox
from tests.support.secrets import SECRETS


async def manager(storage: Storage, account: Account) -> Principal:
    """The principal of a key that may do everything."""
    return await storage.keys.authenticate(await storage.keys.create(account.account_sid, "all", ["*"]))


async def test_valid_keys_are_listed_newest_first(storage: Storage, account: Account) -> None:
    asking = await manager(storage, account)
    made = [
        (await storage.managed_keys.create(asking, "messaging", f"key {n}", ["messages.send"]))[0]
        for n in range(3)
    ]
    await storage.managed_keys.revoke(asking, made[0].key_id)
    _, _, former = await storage.managed_keys.rotate(asking, made[1].key_id, 60)
    page = await storage.managed_keys.page(asking, 1, 2)
    # Those three, the successor, the account's first key and the one that asks, without the revoked one.
    assert (page.total, page.total_pages, len(page.items)) == (5, 3, 2)
    assert page.items[1] == made[2], "the successor is newer"
    listed = [*page.items, *(await storage.managed_keys.page(asking, 2, 2)).items]
    assert former in listed and made[0].key_id not in [key.key_id for key in listed]
    assert (await storage.managed_keys.page(asking, 9, 2)).items == []


async def test_the_number_of_valid_keys_of_a_service_is_limited(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed_keys, "MAX_KEYS", 3)
    asking = await manager(storage, account)
    outcomes = await asyncio.gather(
        *(storage.managed_keys.create(asking, "tools", f"key {n}") for n in range(5)), return_exceptions=True
    )
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 2
    await storage.managed_keys.create(asking, "messaging", "of another service")
    made = next(outcome[0] for outcome in outcomes if not isinstance(outcome, BaseException))
    await storage.managed_keys.revoke(asking, made.key_id)
    last, _ = await storage.managed_keys.create(asking, "tools", "in its place")
    with pytest.raises(Conflict):
        await storage.managed_keys.rotate(asking, last.key_id, 3600)
    await storage.managed_keys.rotate(asking, last.key_id, 0)


async def test_keys_beyond_the_asking_keys_rights_and_of_other_accounts(
    storage: Storage, account: Account, stranger: Account
) -> None:
    sid = account.account_sid
    narrow = await storage.keys.authenticate(
        await storage.keys.create(sid, "platform", ["calls.read", "keys.write"])
    )
    more, _ = await storage.keys.issue(sid, "platform", ["calls.write"])
    elsewhere, _ = await storage.keys.issue(stranger.account_sid, "platform", ["calls.read"])
    for key_id, refusal in ((more.key_id, Forbidden), (elsewhere.key_id, NotFound), (new_id(), NotFound)):
        with pytest.raises(refusal):
            await storage.managed_keys.rotate(narrow, key_id, 0)
        with pytest.raises(refusal):
            await storage.managed_keys.revoke(narrow, key_id)
    with pytest.raises(Forbidden):
        await storage.managed_keys.create(narrow, "platform", "more", ["calls.write"])
    assert (await storage.keys.get(sid, more.key_id)).revoked_at is None


async def test_the_last_key_of_an_account_can_be_revoked(storage: Storage, account: Account) -> None:
    asking = await manager(storage, account)
    for key in (await storage.managed_keys.page(asking, 1, 100)).items:
        if key.key_id != asking.key_id:
            await storage.managed_keys.revoke(asking, key.key_id)
    await storage.managed_keys.revoke(asking, asking.key_id)
    assert (await storage.managed_keys.page(asking, 1, 100)).items == []
    assert await manager(storage, account), "the operator makes another"


async def test_a_wildcard_is_stored_as_it_is_and_opens_every_scope(
    storage: Storage, account: Account
) -> None:
    record, key = await storage.keys.issue(account.account_sid, "platform", ["*"])
    assert (await storage.keys.get(account.account_sid, record.key_id)).scopes == ("*",)
    assert {"*", "webhooks.write", "keys.write"} <= (await storage.keys.authenticate(key)).scopes
    successor, _, _ = await storage.keys.rotate(account.account_sid, record.key_id, 0)
    assert successor.scopes == ("*",)


async def test_both_limits_of_requests_come_with_a_key_of_all_services(
    storage: Storage, account: Account
) -> None:
    limits = {"requests_per_minute": 70, "assistant_requests_per_minute": 7}
    await storage.accounts.update(account.account_sid, limits)
    principal = await manager(storage, account)
    assert (principal.requests_per_minute, principal.assistant_requests_per_minute) == (70, 7)


async def test_a_revoked_key_is_refused_elsewhere_when_it_is_forgotten(
    storage: Storage, url: str, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "CACHE_S", 0.0)
    other = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    asking = await manager(storage, account)
    made, key = await storage.managed_keys.create(asking, "all", "short", ["calls.read"])
    assert (await other.keys.authenticate(key)).key_id == made.key_id
    await storage.managed_keys.revoke(asking, made.key_id)
    for process in (storage, other):
        with pytest.raises(Unauthorized):
            await process.keys.authenticate(key)
    await other.close()


async def test_a_webhook_secret_is_rotated_sealed_and_known_to_every_process(
    storage: Storage, url: str, account: Account
) -> None:
    other = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    sid, asking = account.account_sid, await manager(storage, account)
    changed, secret = await storage.accounts.rotate_webhook_secret(asking, 3600)
    both = (secret, account.webhook_secret)
    assert changed.webhook_secrets(utc_now()) == both == storage.secrets_of(sid)
    await other.refresh()
    assert other.secrets_of(sid) == both

    def stored(connection: Connection) -> str:
        return str(connection.execute(sa.select(accounts).where(accounts.c.account_sid == sid)).one())

    text = await storage.database.read(stored)
    assert secret not in text and account.webhook_secret not in text
    await storage.accounts.update(sid, {"max_calls": 7})
    assert storage.secrets_of(sid) == both, "nothing else touches it"
    _, last = await storage.accounts.rotate_webhook_secret(asking, 0)
    assert storage.secrets_of(sid) == (last,)
    await other.close()


async def test_a_response_that_shows_a_secret_is_stored_sealed(
    storage: Storage, url: str, account: Account
) -> None:
    sid, body = account.account_sid, b'{"data":{"key":"vp_shown-once"}}'
    request = (sid, "key", "POST /v1/keys", "hash")
    assert await storage.idempotency.begin(*request) is None
    await storage.idempotency.complete(sid, "key", 201, body, seal=True)
    stored = await storage.database.read(
        lambda connection: bytes(connection.execute(sa.select(idempotency_keys.c.body)).scalar_one())
    )
    assert stored.startswith(b"sealed:") and b"shown-once" not in stored
    assert await storage.idempotency.begin(*request) == StoredReply(201, body)


async def test_a_sealed_response_is_lost_with_its_secret_key(storage: Storage, account: Account) -> None:
    sid, request = account.account_sid, ("key", "POST /v1/keys", "hash")
    assert await storage.idempotency.begin(sid, *request) is None
    await storage.idempotency.complete(sid, "key", 201, b"{}", seal=True)
    box = SecretBox([bytes(range(100, 132))])

    def move(connection: Connection) -> None:
        sealed = box.seal("idempotency", "{}").encode()
        connection.execute(sa.update(idempotency_keys).values(body=sealed))

    await storage.writer.commit(move)
    with pytest.raises(IdempotencyConflict, match="can no longer be read"):
        await storage.idempotency.begin(sid, *request)
