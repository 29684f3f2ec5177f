"""Stored keys of speech models' vendors, and keys in bindings: sealed, write-only, each account's own."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.tables.secrets import model_keys
from callcontrol.database.tables.trunks import phone_numbers
from callcontrol.errors import Conflict, Forbidden, NotFound, ValidationFailed
from callcontrol.models import Account, Binding
from callcontrol.secrets.aio import SecretBox
from tests.support.customers import add_platform_carrier

KEY = "sk-proj-0815"
OLD, NEW = bytes(range(32)), bytes(range(32, 64))
GIVEN = {"name": "desk", "provider": "openai", "api_key": KEY}
MODEL = {"provider": "gemini", "model": "m", "api_key": KEY, "url": "wss://93.184.216.34/x"}


async def test_a_key_is_stored_sealed_and_given_to_sessions_alone(storage: Storage, account: Account) -> None:
    made = await storage.model_keys.create(account.account_sid, GIVEN)
    (listed,) = await storage.model_keys.list(account.account_sid)
    assert (listed.key_id, listed.name, listed.provider) == (made.key_id, "desk", "openai")
    assert KEY not in repr(listed)
    assert await storage.model_keys.secret(account.account_sid, "desk") == KEY
    stored = await storage.database.read(lambda connection: connection.scalar(sa.select(model_keys.c.secret)))
    assert str(stored).startswith("sealed:1:") and KEY not in str(stored)


async def test_names_are_the_accounts_own(storage: Storage, account: Account, stranger: Account) -> None:
    made = await storage.model_keys.create(account.account_sid, GIVEN)
    with pytest.raises(Conflict):
        await storage.model_keys.create(account.account_sid, {**GIVEN, "api_key": "sk-2"})
    theirs = await storage.model_keys.create(stranger.account_sid, {**GIVEN, "api_key": "sk-3"})
    assert await storage.model_keys.secret(stranger.account_sid, "desk") == "sk-3"
    with pytest.raises(Forbidden):
        await storage.model_keys.delete(account.account_sid, theirs.key_id)
    await storage.model_keys.delete(account.account_sid, made.key_id)
    with pytest.raises(NotFound):
        await storage.model_keys.delete(account.account_sid, made.key_id)
    with pytest.raises(NotFound):
        await storage.model_keys.secret(account.account_sid, "desk")


async def test_wrong_fields_are_named(storage: Storage, account: Account) -> None:
    with pytest.raises(ValidationFailed) as caught:
        await storage.model_keys.create(
            account.account_sid, {"name": "a b", "provider": "acme", "api_key": "", "colour": "red"}
        )
    assert {error.field for error in caught.value.errors} == {"name", "provider", "api_key", "colour"}


async def test_a_key_in_a_binding_is_sealed_and_resealed(url: str) -> None:
    storage = await Storage.open(url, deliver=False, secrets=SecretBox([OLD]))
    account, _ = await storage.accounts.create("Acme", kyc=True)
    await add_platform_carrier(storage)
    number = await storage.numbers.add(account.account_sid, "+918047000001")
    binding = Binding("model", model=MODEL)
    await storage.numbers.bind(account.account_sid, number.phone_number_id, binding, force=True)
    await storage.model_keys.create(account.account_sid, GIVEN)
    stored = await storage.database.read(
        lambda connection: connection.scalar(sa.select(phone_numbers.c.binding))
    )
    assert KEY not in str(stored) and "sealed:1:" in str(stored)
    await storage.close()
    storage = await Storage.open(url, secrets=SecretBox([NEW, OLD]))
    await storage.close()
    storage = await Storage.open(url, deliver=False, secrets=SecretBox([NEW]))
    bound = storage.directory.number("+918047000001")
    assert bound is not None and bound.binding is not None and bound.binding.model == MODEL
    assert KEY not in repr(bound)
    assert await storage.model_keys.secret(account.account_sid, "desk") == KEY
    await storage.close()
