"""Secrets at rest: sealed in every row, sealed anew with a new key, and a wrong key refused at the start."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.aio.database import Database
from callcontrol.database.encryption import BINDINGS, SEALED
from callcontrol.database.tables import metadata
from callcontrol.database.tables.accounts import accounts
from callcontrol.database.tables.trunks import carriers, phone_numbers
from callcontrol.errors import SecretsUnreadable
from callcontrol.models import Account, Binding, Carrier, PhoneNumber
from callcontrol.secrets.aio import KEY_FILE, SecretBox
from tests.support.customers import add_platform_carrier
from tests.support.secrets import SECRETS

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
PASSWORDS = {"register_password": "outbound-0815", "inbound_auth_password": "inbound-4711"}
AUTH = {"type": "basic", "username": "bot", "password": "stream-1234"}
HIDDEN = (*PASSWORDS.values(), AUTH["password"], "whsec_")


def everything(connection: Connection) -> str:
    """All text of all tables."""
    return "\n".join(
        str(row) for table in metadata.sorted_tables for row in connection.execute(sa.select(table)).all()
    )


async def fill(storage: Storage) -> tuple[Account, Carrier, PhoneNumber]:
    account, _ = await storage.accounts.create("Acme", kyc=True)
    carrier = await storage.trunks.create_carrier(
        account.account_sid,
        {
            "name": "Own",
            "trunk_type": "auth",
            "register_username": "out",
            "inbound_auth_username": "in",
            **PASSWORDS,
        },
    )
    await add_platform_carrier(storage)
    number = await storage.numbers.add(account.account_sid, "+918047000001")
    binding = Binding("media_stream", stream_url="wss://93.184.216.34/x", sample_rate=8000, stream_auth=AUTH)
    await storage.numbers.bind(account.account_sid, number.phone_number_id, binding, force=True)
    return account, carrier, number


def check(storage: Storage, filled: tuple[Account, Carrier, PhoneNumber]) -> None:
    account, carrier, number = filled
    seen = storage.directory.account(account.account_sid)
    assert seen is not None and seen.webhook_secret == account.webhook_secret
    mirrored = storage.directory.carrier(carrier.carrier_sid)
    assert mirrored is not None
    assert {name: getattr(mirrored, name) for name in PASSWORDS} == PASSWORDS
    bound = storage.directory.number(number.number)
    assert bound is not None and bound.binding is not None and bound.binding.stream_auth == AUTH


async def test_no_row_holds_a_secret_in_the_clear(url: str) -> None:
    storage = await Storage.open(url, deliver=False, secrets=SECRETS)
    filled = await fill(storage)
    check(storage, filled)
    text = await storage.database.read(everything)
    assert not [secret for secret in HIDDEN if secret in text]
    assert text.count("sealed:1:") == 5  # One account, two passwords, one binding and the sample.
    await storage.close()
    again = await Storage.open(url, deliver=False, secrets=SECRETS)
    check(again, filled)
    await again.close()


async def test_the_rows_of_an_earlier_version_are_sealed_at_the_start(url: str) -> None:
    storage = await Storage.open(url, deliver=False, secrets=SECRETS)
    account, carrier, number = filled = await fill(storage)

    def lay_open(connection: Connection) -> None:
        connection.execute(sa.text("DELETE FROM secret_check"))
        connection.execute(sa.update(accounts).values(webhook_secret=account.webhook_secret))
        mine = carriers.c.carrier_sid == carrier.carrier_sid
        connection.execute(sa.update(carriers).where(mine).values(PASSWORDS))
        binding = (
            '{"target":"media_stream","stream_url":"wss://93.184.216.34/x","sample_rate":8000,"stream_auth":'
            f'{{"type":"basic","username":"bot","password":"{AUTH["password"]}"}}}}'
        )
        connection.execute(sa.update(phone_numbers).values(binding=binding))

    await storage.writer.commit(lay_open)
    text = await storage.database.read(everything)
    assert all(secret in text for secret in HIDDEN)
    await storage.close()
    again = await Storage.open(url, deliver=False, secrets=SECRETS)
    check(again, filled)
    text = await again.database.read(everything)
    assert not [secret for secret in HIDDEN if secret in text]
    await again.close()


async def test_a_key_is_replaced_at_a_start_and_then_forgotten(url: str) -> None:
    storage = await Storage.open(url, deliver=False, secrets=SecretBox([OLD]))
    filled = await fill(storage)
    await storage.close()
    storage = await Storage.open(url, secrets=SecretBox([NEW, OLD]))
    check(storage, filled)
    await storage.close()
    storage = await Storage.open(url, deliver=False, secrets=SecretBox([NEW]))
    check(storage, filled)
    await storage.close()
    with pytest.raises(SecretsUnreadable):
        await Storage.open(url, deliver=False, secrets=SecretBox([OLD]))


async def test_what_another_process_seals_with_the_old_key_is_sealed_at_the_next_start(url: str) -> None:
    old = await Storage.open(url, deliver=False, secrets=SecretBox([OLD, NEW]))
    new = await Storage.open(url, secrets=SecretBox([NEW, OLD]))
    filled = await fill(old)
    await new.refresh()
    check(new, filled)
    await old.close()
    await new.close()
    again = await Storage.open(url, secrets=SecretBox([NEW, OLD]))
    await again.close()
    last = await Storage.open(url, deliver=False, secrets=SecretBox([NEW]))
    check(last, filled)
    await last.close()


async def test_a_wrong_key_is_refused_before_anything_is_done(url: str) -> None:
    storage = await Storage.open(url, deliver=False, secrets=SecretBox([OLD]))
    await fill(storage)
    before = await storage.database.read(everything)
    await storage.close()
    with pytest.raises(SecretsUnreadable, match="TRUNKLINE_SECRET_KEY"):
        await Storage.open(url, secrets=SecretBox([NEW]))
    storage = await Storage.open(url, deliver=False, secrets=SecretBox([OLD]))
    assert await storage.database.read(everything) == before
    await storage.close()


async def test_processes_that_start_together_with_different_keys_do_not_both_start(url: str) -> None:
    boxes = [SecretBox([OLD]), SecretBox([NEW])]
    opened = await asyncio.gather(
        *(Storage.open(url, deliver=False, secrets=box) for box in boxes), return_exceptions=True
    )
    started = [item for item in opened if isinstance(item, Storage)]
    assert len(started) == 1
    assert [item for item in opened if isinstance(item, SecretsUnreadable)]
    await started[0].close()


async def test_a_deleted_carrier_leaves_no_password_behind(storage: Storage) -> None:
    account, carrier, _ = await fill(storage)
    await storage.trunks.delete_carrier(account.account_sid, carrier.carrier_sid)
    mine = carriers.c.carrier_sid == carrier.carrier_sid

    def stored(connection: Connection) -> Any:
        return connection.execute(
            sa.select(carriers.c.register_password, carriers.c.inbound_auth_password).where(mine)
        ).one()

    assert tuple(await storage.database.read(stored)) == (None, None)


async def test_a_database_without_a_key_keeps_no_secret(url: str) -> None:
    database = await Database.open(url)
    await database.close()
    if url.startswith("postgresql"):
        with pytest.raises(ValueError, match="needs a key"):
            await Storage.open(url)


async def test_an_embedded_database_has_its_key_beside_it(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/trunkline.db"
    storage = await Storage.open(url, deliver=False)
    filled = await fill(storage)
    await storage.close()
    storage = await Storage.open(url, deliver=False)
    check(storage, filled)
    await storage.close()
    (tmp_path / KEY_FILE).unlink()
    with pytest.raises(SecretsUnreadable):
        await Storage.open(url, deliver=False)


def test_every_column_that_sounds_like_a_secret_is_sealed() -> None:
    words = ("password", "secret", "auth_token", "binding")
    hashed_or_public = {"secret_check"}
    found = {
        column
        for table in metadata.sorted_tables
        if table.name not in hashed_or_public
        for column in table.c
        if any(word in column.name for word in words)
    }
    assert found <= {*SEALED, *BINDINGS}
